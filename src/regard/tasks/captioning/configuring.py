"""From what was typed to the configuration of a new captioner."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from regard.tasks.captioning.config import Attention, CaptioningConfig, for_photos, for_scenes
from regard.tasks.naming import changed, chosen, in_folder, of_data

DATA = """IMAGES is scenes (drawn here, endless), or a folder with captions.tsv (lines of train, dev or test, an image
and a caption, with tabs between; also .gz), or the text files of Flickr8k, and the images, in a folder `images` or in
images.zip."""
PRESETS: Mapping[str, Attention] = {name: name for name in get_args(Attention)}


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> CaptioningConfig:
    """The captioner with this attention for these images, with other values for some fields."""
    attention = chosen(PRESETS, preset)
    images, values = of_data(for_scenes(), "data.images", data, values)
    base = for_scenes() if images == "scenes" else for_photos(images)
    base = replace(base, model=replace(base.model, attention=attention))
    return changed(in_folder(base, "captioning", images, attention), values)
