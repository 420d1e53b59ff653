"""From what was typed to the configuration of a new captioner."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from regard.tasks.captioning.config import AttentionKind, CaptioningConfig, configure_for_photos, configure_for_scenes
from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder

DATA = """IMAGES is scenes (drawn here, endless), or a folder with captions.tsv (lines of train, dev or test, an image
and a caption, with tabs between; also .gz), or the text files of Flickr8k, and the images, in a folder `images` or in
images.zip."""
PRESETS: Mapping[str, AttentionKind] = {name: name for name in get_args(AttentionKind)}


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> CaptioningConfig:
    """The captioner with this attention for these images, with other values for some fields."""
    attention = choose_preset(PRESETS, preset)
    images, values = resolve_data(configure_for_scenes(), "data.images", data, values)
    base = configure_for_scenes() if images == "scenes" else configure_for_photos(images)
    base = replace(base, model=replace(base.model, attention=attention))
    return apply_changes(set_run_folder(base, "captioning", images, attention), values)
