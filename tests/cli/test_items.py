"""Several files, folders and lists are answered one after another, and what cannot be read stops no other."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from regard.cli.items import collect_items
from regard.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))

from tiny_runs import make_untrained

Regard = Callable[..., object]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of two images, a text file and an empty folder, in the present folder."""
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    Path("empty").mkdir()
    for name, color in (("b.png", "red"), ("a.JPG", "blue")):
        Image.new("RGB", (16, 16), color).save(Path("photos") / name)
    Path("photos/notes.txt").write_text("no image\n")


@pytest.mark.usefixtures("files")
def test_words_are_items_as_the_task_reads_them() -> None:
    assert collect_items("captioning", []) == [()]
    assert collect_items("captioning", ["photos", "x.png"]) == [("photos/a.JPG",), ("photos/b.png",), ("x.png",)]
    assert collect_items("vqa", ["photos", "photos/b.png", "what", "is", "it?"]) == [
        ("photos/a.JPG", "what is it?"),
        ("photos/b.png", "what is it?"),
        ("photos/b.png", "what is it?"),
    ]
    assert collect_items("reading", ["none.txt", "Who?"]) == [("none.txt", "Who?")]
    assert collect_items("reading", ["photos", "Who?"]) == [("photos/notes.txt", "Who?")]
    assert collect_items("translation", ["one", "two"]) == [("one", "two")]
    assert collect_items("digits", ["3"]) == [("3",)]
    assert collect_items("translation", ["a\0b"]) == [("a\0b",)]


@pytest.mark.usefixtures("files")
def test_a_list_has_an_item_in_each_line_and_files_beside_it() -> None:
    Path("photos/list.tsv").write_text("a.JPG\twhat is it?\n\nphotos/b.png\tis it red?\r\n")
    assert collect_items("vqa", [], Path("photos/list.tsv")) == [
        ("photos/a.JPG", "what is it?"),
        ("photos/b.png", "is it red?"),
    ]
    Path("lines.txt").write_text("forty-two\n七\n")
    assert collect_items("translation", ["one"], Path("lines.txt")) == [("one",), ("forty-two",), ("七",)]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "listed", "sentence"),
    [
        (["empty"], None, "folder: got empty without such a file, expected some that end in .png, .jpg"),
        (
            [],
            Path("none.tsv"),
            "list: got no file none.tsv, expected a text file with an item in each line; fix: check",
        ),
        ([], Path("empty.tsv"), "list: got empty.tsv without a line, expected an item in each line; fix: check the"),
        ([], Path("photos/a.JPG"), "a.JPG: got byte 0xff in line 1, expected UTF-8 text"),
    ],
)
def test_what_holds_no_item_is_one_sentence(words: list[str], listed: Path | None, sentence: str) -> None:
    Path("empty.tsv").write_text("\n \n")
    with pytest.raises(InputError) as caught:
        collect_items("captioning", words, listed)
    assert str(caught.value).startswith(sentence)


@pytest.mark.usefixtures("files")
def test_a_folder_is_captioned_to_tsv_and_json_lines(regard: Regard) -> None:
    run = make_untrained(Path("run"), "captioning")
    done = regard("caption", "photos", "--run", run)
    assert (done.code, done.errors) == (0, "")
    rows = [line.split("\t") for line in done.output.splitlines()]
    assert [row[0] for row in rows] == ["photos/a.JPG", "photos/b.png"]
    assert all(len(row) == 2 for row in rows)
    written = regard("predict", run, "photos/b.png", "--output", "said.jsonl", "--show", "pictures")
    assert (written.code, written.output, written.errors) == (0, "", "")
    (one,) = map(json.loads, Path("said.jsonl").read_text().splitlines())
    assert (one["item"], one["text"]) == (["photos/b.png"], rows[1][1])
    assert [path.name for path in Path("pictures").iterdir()] == ["0001-b.png"]


@pytest.mark.usefixtures("files")
def test_a_file_that_cannot_be_read_is_told_and_the_others_are_answered(regard: Regard) -> None:
    run = make_untrained(Path("run"), "captioning")
    done = regard("caption", "none.png", "photos/b.png", "--run", run)
    assert done.code == 2
    assert done.output.startswith("photos/b.png\t")
    assert done.errors.splitlines() == [
        "regard: none.png: photo: got no file none.png, expected an image; fix: check the path",
        "regard: items: got 1 of 2 without an answer, expected an answer to each; fix: see the messages above",
    ]
    none = regard("caption", "--run", run)
    assert none.errors.startswith("regard: items: got none, expected files, folders, or a list of them; fix: name some")
    picture = regard("caption", "photos", "--run", run, "--show", "one.png")
    assert picture.errors.startswith("regard: --show: got one.png, expected a folder, because there are several items")
