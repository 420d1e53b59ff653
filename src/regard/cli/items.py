"""Collect what is asked about on a command line: files, folders of files, questions, and lists of them in a file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from regard.cli.input import get_stdin_handle, read_lines
from regard.datasets.bounds import check_file, get_bound
from regard.datasets.locations import is_path
from regard.datasets.text import decode_text
from regard.errors import wrong

Item: TypeAlias = tuple[str, ...]  # what a predictor is asked about at once: a text, a file, a file and a question
IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
SOUNDS = (".wav", ".flac", ".ogg", ".mp3")
TEXTS = (".txt", ".md")
MEDIA = {"captioning": IMAGES, "vqa": IMAGES, "digits": IMAGES, "speech": SOUNDS, "reading": TEXTS}  # by task
QUESTIONED = ("vqa", "reading")  # tasks whose files come with a question
STDIN = "-"


def collect_items(task: str, words: Sequence[str], listed: Path | None = None) -> list[Item]:
    """Return the items of a command line, in its order, then those of a list. An empty item is a held-out example."""
    items = collect_words(task, words) if words or listed is None else []
    return items if listed is None else [*items, *read_list(task, listed)]


def collect_words(task: str, words: Sequence[str]) -> list[Item]:
    """Return the items that some words name. Only tasks that read files take several at once."""
    if task not in MEDIA or not words:
        return [tuple(words)]
    if task not in QUESTIONED:
        return [(file,) for word in words for file in expand_folder(word, task)]
    count = count_files(words)
    question = (" ".join(words[count:]),) if len(words) > count else ()
    return [(file, *question) for word in words[:count] for file in expand_folder(word, task)]


def count_files(words: Sequence[str]) -> int:
    """Return how many words at the beginning are files; the first always is one, even if it is not there."""
    count = 1
    while count < len(words) and is_path(words[count]):
        count += 1
    return count


def expand_folder(word: str, task: str) -> list[str]:
    """Return the files of a folder that the task can read, sorted; any other word as it is."""
    if not is_path(word) or not Path(word).is_dir():
        return [word]
    kinds = MEDIA[task]
    files = sorted(str(path) for path in Path(word).iterdir() if path.suffix.lower() in kinds and path.is_file())
    if not files:
        raise wrong("folder", f"{word} without such a file", f"some that end in {', '.join(kinds)}", "check the path")
    return files


def read_list(task: str, path: Path) -> list[Item]:
    """Return an item for each line of a file: a text or a path, and behind a tab its question if there is one.

    Paths are taken from the present folder, or else from that of the list; - is standard input.
    """
    if str(path) == STDIN:
        lines = [line for part in read_lines(get_stdin_handle(), sys.maxsize) for line in part]
    elif not path.is_file():
        raise wrong("list", f"no file {path}", "a text file with an item in each line", "check the path")
    else:
        check_file("list", path, get_bound("text", "bytes"))
        lines = decode_text(path.read_bytes(), path.name).splitlines()
    items = [tuple(part.strip() for part in line.split("\t")) for line in lines if line.strip()]
    if not items:
        raise wrong("list", f"{path} without a line", "an item in each line", "check the file")
    return [locate(item, path.parent) for item in items] if task in MEDIA else items


def locate(item: Item, folder: Path) -> Item:
    """Return an item whose file is looked for beside the list if it is not in the present folder."""
    file, *question = item
    beside = folder / file
    return (str(beside) if not is_path(file) and is_path(str(beside)) else file, *question)
