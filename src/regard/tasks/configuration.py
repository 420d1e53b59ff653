"""Fields by the names that people type: the end of a name will do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import find_nearest, wrong
from regard.training import configure
from regard.training.config import walk_fields

Config = TypeVar("Config")


def apply_changes(base: Config, values: Mapping[str, Any]) -> Config:
    """`base` with other values for some fields. The end of a name will do: the field nearest the top is meant.

    >>> from regard.tasks.translation import TranslationConfig
    >>> apply_changes(TranslationConfig(), {"seed": "3"}).training.seed
    3
    """
    known = [name for name, _ in walk_fields(base)]
    return configure(base, None, {full: value for name, value in values.items() for full in resolve_field(name, known)})


def resolve_field(name: str, fields: Sequence[str]) -> list[str]:
    """The fields that a name stands for: itself, or the one nearest the top that ends so.

    One seed means all of them, so that runs with two seeds share nothing.

    >>> resolve_field("stop.steps", ["training.stop.steps"]), resolve_field("seed", ["data.seed", "training.seed"])
    (['training.stop.steps'], ['data.seed', 'training.seed'])
    """
    if name == "seed":
        return [field for field in fields if field.endswith(".seed")]
    ending = [field for field in fields if field.endswith(f".{name}")]
    highest = [field for field in ending if count_dots(field) == min(map(count_dots, ending))]
    return highest if name not in fields and len(highest) == 1 else [name]


def count_dots(name: str) -> int:
    return name.count(".")


def choose_preset(presets: Mapping[str, Config], name: str | None) -> Config:
    """The preset of this name; the first where none is named. A run of it goes to a folder of its name.

    >>> choose_preset({"small": 1, "large": 2}, None)
    1
    """
    name = next(iter(presets)) if name is None else name
    if name not in presets:
        raise wrong("preset", name, f"one of {', '.join(presets)}", f"write --preset {find_nearest(name, presets)}")
    return presets[name]


def set_run_folder(config: Config, *words: str) -> Config:
    """`config` with a run folder that is named by these words, of a path its last part.

    >>> from regard.tasks.translation import TranslationConfig
    >>> set_run_folder(TranslationConfig(), "digits", "/data/mnist").training.folder.as_posix()
    'runs/digits-mnist'
    """
    whole: Any = config
    folder = Path("runs") / "-".join(Path(word).name.split(".")[0] for word in words if word)
    placed: Config = replace(whole, training=replace(whole.training, folder=folder))
    return placed


def resolve_data(
    default: Any, field: str, data: Sequence[str], values: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """What is to be learned from, named as data or in its field, and all values by their whole names.

    >>> from regard.tasks.translation import TranslationConfig
    >>> resolve_data(TranslationConfig(), "data.text", ["dates"], {"seed": "3", "heads": "2"})[1]
    {'data.seed': '3', 'training.seed': '3', 'model.transformer.heads': '2', 'data.text': 'dates'}
    """
    known = dict(walk_fields(default))
    whole = {full: value for name, value in values.items() for full in resolve_field(name, list(known))}
    given = get_single_name(data)
    if given is not None:
        whole[field] = given
    return str(whole.get(field, known[field])), whole


def get_single_name(data: Sequence[str]) -> str | None:
    """The one name of data, or none."""
    if len(data) > 1:
        raise wrong("data", f"{len(data)} names", "one name, or none for the default", "name one file or folder")
    return make_path_absolute(data[0]) if data else None


def make_path_absolute(name: str) -> str:
    """What was named; a path, so that it is still right when the run is resumed from another folder."""
    return str(Path(name).resolve()) if Path(name).exists() else name
