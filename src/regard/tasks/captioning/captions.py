"""Captions by split and image, from a table of ours or from the files of Flickr8k's authors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data.held_out import assign_parts
from regard.tasks.data.text_files import read_lines
from regard.tasks.data.words import WordCut, normalize_words
from regard.tasks.images import ImageFiles

SPLITS = {"train": "train", "dev": "validation", "val": "validation", "validation": "validation", "test": "test"}
TABLES = ("captions.tsv", "captions.tsv.gz")
FLICKR8K_CAPTIONS = "Flickr8k.token.txt"  # in each line an image, # and a number, a tab, and a caption
FLICKR8K_SPLITS = {
    "train": "Flickr_8k.trainImages.txt",
    "validation": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}
Table = Mapping[str, Mapping[str, tuple[str, ...]]]  # by split, then by image


def find_file(folder: Path, names: Sequence[str], what: str, meaning: str) -> Path:
    """Return the first of these that is in the folder."""
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise wrong(what, f"none in {folder}", f"{' or '.join(names)}: {meaning}", "put it there")


def read_captions(folder: Path, pictures: ImageFiles, cut: WordCut = "character") -> Table:
    """Return the captions in a folder, each of an image that is there."""
    meaning = "lines of split, image and caption, with tabs between, or the text files of Flickr8k"
    path = find_file(folder, (*TABLES, FLICKR8K_CAPTIONS), "captions", meaning)
    table = (read_flickr8k if path.name == FLICKR8K_CAPTIONS else read_table)(path, cut)
    check_table(table, path, pictures)
    return table


def names_splits(folder: Path) -> bool:
    """Return whether the files of a folder say which images are for tests."""
    path = next((folder / name for name in TABLES if (folder / name).exists()), None)
    return path is None or all(parse_line(line, path.name)[0] for line in read_lines(path) if line)


def read_table(path: Path, cut: WordCut = "character") -> Table:
    """Read a table. Its lines name their splits, so that all who use the data compare the same, or none does."""
    table: dict[str, dict[str, tuple[str, ...]]] = {"train": {}, "validation": {}, "test": {}}
    rows = [parse_line(line, f"{path.name}, line {number}") for number, line in enumerate(read_lines(path), 1) if line]
    parts = assign_parts(list(dict.fromkeys(name for split, name, _ in rows if not split)))
    for split, name, caption in rows:
        own = table[split or parts[name]]
        own[name] = (*own.get(name, ()), normalize_words(caption, cut))
    return table


def parse_line(line: str, name: str) -> tuple[str, str, str]:
    """Return split, image and caption of a line; no split if the line has only the others."""
    parts = line.split("\t")
    if len(parts) == 2 and parts[0] not in SPLITS:
        return "", parts[0], parts[1]
    if len(parts) != 3 or parts[0] not in SPLITS:
        expected = f"one of {', '.join(SPLITS)}, an image and a caption, with tabs between"
        raise wrong(name, repr(line[:60]), expected, "correct that line")
    return SPLITS[parts[0]], parts[1], parts[2]


def read_flickr8k(path: Path, cut: WordCut = "character") -> Table:
    """Read all captions from one file, and the images of each split from lists beside it; others are left out."""
    known: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(read_lines(path), 1):
        name, tab, caption = line.partition("\t")
        image, sign, _ = name.rpartition("#")
        if not (tab and sign):
            expected = "an image, # and a number, a tab and a caption"
            raise wrong(f"{path.name}, line {number}", repr(line[:60]), expected, "fetch the file again")
        known[image] = (*known.get(image, ()), normalize_words(caption, cut))
    table: dict[str, dict[str, tuple[str, ...]]] = {}
    for split, own in FLICKR8K_SPLITS.items():
        names = read_lines(find_file(path.parent, [own], "captions", f"the images for {split}"))
        table[split] = {name.strip(): known.get(name.strip(), ("",)) for name in names if name.strip()}
    return table


def check_table(table: Table, path: Path, pictures: ImageFiles) -> None:
    """Raise if a part, a caption or an image is missing, or an image is in two parts."""
    home: dict[str, str] = {}
    for split, images in table.items():
        if not images:
            raise wrong(path.name, f"no captions for {split}", "some of each part", "name the part at the line's start")
        for name, captions in images.items():
            if not all(captions):
                fix = "write a caption, or take the line out"
                raise wrong(path.name, f"an empty caption of {name}", "some words", fix)
            if name not in pictures.members:
                fix = "bring the image back, or take its captions out"
                raise wrong("images", f"no {name} in {pictures.path}", "an image for every caption", fix)
            if name in home:
                got, fix = f"{name} for {home[name]} and for {split}", "give all its captions the same part"
                raise wrong(path.name, got, "each image in one part, so that none is tested on that was learned", fix)
            home[name] = split
