"""The table of bounds is the one that SECURITY.md lists and that the code uses."""

import re
from pathlib import Path

import pytest

from regard.datasets.bounds import BOUNDS, check_file, format_markdown, get_bound, parse_json
from regard.errors import InputError

ROOT = Path(__file__).parents[2]


def test_security_md_lists_the_table_as_it_is() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    listed = text.partition("<!-- bounds -->\n")[2].partition("\n<!-- /bounds -->")[0]
    assert listed == format_markdown(), "write what bounds.format_markdown() returns between the two marks"


def test_every_bound_is_used() -> None:
    """By its name, or in a loop over names in the file that checks them."""
    folder = ROOT / "src" / "regard"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "bounds.py")
    used = set(re.findall(r"""get_bound\(\s*["']([\w ]+)["'],\s*["']([\w ]+)["']""", text))
    loops = [
        ("run folder", "training/config_bounds.py"),
        ("run folder", "web/run_checks.py"),
        ("sound", "tasks/speech/sound.py"),
    ]
    for name, path in loops:
        used |= {(name, quantity) for quantity in re.findall(r'"([\w ]+)"', (folder / path).read_text("utf-8"))}
    table = {(name, quantity) for name, bounds in BOUNDS.items() for quantity in bounds}
    assert table - used == set()


def test_every_bound_is_more_than_nothing() -> None:
    assert all(bound.most >= 1 and bound.unit for bounds in BOUNDS.values() for bound in bounds.values())
    assert get_bound("server", "connections") > get_bound("server", "followers") + get_bound("server", "waiting")


def test_a_file_within_its_bound_passes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(5))
    check_file("thing", tmp_path / "a", 5)
    with pytest.raises(InputError, match=r"thing: got b of 5 bytes, expected at most 4; fix: use a smaller one"):
        check_file("thing", tmp_path / "a", 4, "b")
    with pytest.raises(InputError, match=r"thing: got .*, which is not a plain file, expected a file; fix: copy"):
        check_file("thing", tmp_path, 5)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, b"[" * 100_000, "", "nothing", "9" * 5000])
def test_json_that_is_damaged_or_nested_too_deep_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"(char|digits|nested)"):
        parse_json(text)


def test_json_is_read_in_one_place() -> None:
    """Elsewhere it would be forgotten that brackets, too, can be too many. A request's body has its own words."""
    folder = ROOT / "src" / "regard"
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.py") if "json.load" in path.read_text("utf-8")}
    assert found == {"datasets/bounds.py", "web/bodies.py"}


def read_answers(folder: Path) -> object:
    from regard.tasks.vqa.task import load_vocabulary_and_answers

    return load_vocabulary_and_answers(folder)


def read_questions(folder: Path) -> object:
    from regard.tasks.vqa.questions import read_rows

    return read_rows(folder / "answers.json")


def read_articles(folder: Path) -> object:
    from regard.tasks.reading import squad

    return squad.read_articles(folder / "answers.json")


def read_lexicon(folder: Path) -> object:
    from regard.tasks.reading.lexicon import Lexicon

    return Lexicon.load(folder)


@pytest.mark.parametrize("read", [read_answers, read_questions, read_articles, read_lexicon])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "7", "null", "{}", "[[]]"])
def test_files_of_tasks_that_are_damaged_are_one_sentence(tmp_path: Path, read: object, text: str) -> None:
    for name in ("answers.json", "words.json"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"^[\w.]+: got .*, expected .*; fix: "):
        read(tmp_path)  # type: ignore[operator]
