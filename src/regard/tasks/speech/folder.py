"""A folder of sound files with transcripts: in a table, or in a text file beside each."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data.held_out import assign_parts
from regard.tasks.data.text_files import read_lines
from regard.tasks.speech.clips import Clip, RecordedClips
from regard.tasks.speech.sound import read_sound

SOUNDS = {".wav", ".flac", ".ogg", ".mp3"}
TABLES = ("transcripts.tsv", "transcripts.txt", "metadata.tsv", "metadata.csv")  # the last as LJSpeech has it
SEPARATORS = ("\t", "|")
SPLITS = {"train": "train", "validation": "validation", "valid": "validation", "dev": "validation", "test": "test"}


def read_folder(place: Path, rate: int) -> RecordedClips:
    """Read clips by split: folders `train`, `validation` and `test`, or else parts cut by the names of the files."""
    files = sorted(path for path in place.rglob("*") if path.suffix.lower() in SOUNDS)
    if not files:
        fix = "give a folder with sound files and their transcripts, or tones"
        raise wrong("data", f"no sound file in {place}", "wav, flac, ogg or mp3 files", fix)
    texts, notes = read_transcripts(place, files)
    clips: dict[str, list[Clip]] = {"train": [], "validation": [], "test": []}
    heard: list[str] = []
    for path, split in zip(files, assign_splits(place, files), strict=True):
        sound = read_sound(path, rate)
        heard += sound.notes
        clips[split].append(Clip(sound.samples, texts[path], str(path.relative_to(place))))
    for name, own in clips.items():
        if not own:
            fix = "record more, or sort them into the folders train, validation and test"
            raise wrong("data", f"no sound for {name} in {place}", "some of each", fix)
    tests = {"test": clips["test"]}
    chosen = not any(match_split_folders(place, files))
    return RecordedClips(clips["train"], clips["validation"], tests, (*notes, *shorten_notes(heard)), cut=chosen)


def read_transcripts(place: Path, files: Sequence[Path]) -> tuple[Mapping[Path, str], list[str]]:
    """Return the transcript of each file; raise if one is missing. Notes tell of transcripts without a file."""
    listed = dict(entry for table in find_tables(place) for entry in read_rows(table))
    found = {path: listed.get(path.name) or listed.get(path.stem) or read_sidecar_text(path) for path in files}
    missing = [str(path.relative_to(place)) for path in files if not found[path]]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        fix = f"write {Path(missing[0]).with_suffix('.txt')}, or transcripts.tsv with a file and its text in each line"
        raise wrong("transcripts", f"none for {missing[0]}{more}", "one for each sound file", fix)
    there = {name for path in files for name in (path.name, path.stem)}
    absent = [name for name in listed if name not in there]
    notes = [f"transcripts without a sound file: {len(absent)}, such as that of {absent[0]}"] if absent else []
    return {path: text for path, text in found.items() if text}, notes


def find_tables(place: Path) -> list[Path]:
    """Return the tables of transcripts in a folder."""
    return sorted(path for name in TABLES for path in place.rglob(name))


def read_rows(table: Path) -> Iterable[tuple[str, str]]:
    """Yield the entries of a table: a file and its transcript, with a tab or a bar between."""
    for number, line in enumerate(read_lines(table), start=1):
        separator = next((mark for mark in SEPARATORS if mark in line), None)
        if separator is None and line.strip():
            fix = "put a tab between the file and its text"
            raise wrong(table.name, f"no tab in line {number}", "a file and its text", fix)
        if separator is not None:
            name, text = line.split(separator)[:2]
            yield Path(name.strip()).name, text.strip()


def read_sidecar_text(path: Path) -> str:
    """Return the text of the `.txt` file beside a sound file, or nothing."""
    text = path.with_suffix(".txt")
    return " ".join(" ".join(read_lines(text)).split()) if text.is_file() and text.stat().st_size else ""


def assign_splits(place: Path, files: Sequence[Path]) -> list[str]:
    """Return the split of each file: by its folder, or by a hash of its name if there are no such folders."""
    if any(match_split_folders(place, files)):
        return [SPLITS.get(path.relative_to(place).parts[0], "train") for path in files]
    return list(assign_parts([str(path.relative_to(place)) for path in files]).values())


def match_split_folders(place: Path, files: Sequence[Path]) -> list[bool]:
    """Return which files lie in the folder of a split."""
    return [path.relative_to(place).parts[0] in SPLITS for path in files]


def shorten_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the first of many similar notes, and how many follow."""
    return tuple(notes) if len(notes) <= 1 else (f"{notes[0]}; and so {len(notes) - 1} more",)
