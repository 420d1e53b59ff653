"""Text by name, as a configuration says it."""

from pathlib import Path

import pytest

from regard.errors import InputError
from regard.tasks.data import Dates, Numbers, TextConfig, open_text
from regard.tasks.data.dataset import FixedDataset, compute_fingerprint


def test_text_that_needs_no_file() -> None:
    assert isinstance(open_text(TextConfig()), Numbers)
    pair = open_text(TextConfig(source="digits", target="de", size=1)).load_training(0)[0]
    assert pair.source.replace(" ", "").isdecimal()
    dates = open_text(TextConfig("dates", source="zh,en", size=5))
    assert isinstance(dates, Dates)
    assert {form.locale for form in dates.forms} == {"zh", "en"}


def test_phrases_are_a_function_of_their_english() -> None:
    phrases = open_text(TextConfig("phrases-zh", size=300, held_out=20))
    pairs = phrases.load_training(0)
    assert len({pair.source for pair in pairs}) == len(set(pairs)) > 250
    assert all(pair.source.isascii() and pair.target.endswith("。") for pair in pairs)
    assert not {pair.source for pair in pairs} & {pair.source for pair in phrases.validation}


def test_text_in_files(tmp_path: Path) -> None:
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("".join(f"{language} {number}\n" for number in range(9)))
    (tmp_path / "t.tsv").write_text("".join(f"x\ta {number}\tb {number}\n" for number in range(9)))
    folder = open_text(TextConfig(str(tmp_path), "en", "de"))
    files = open_text(TextConfig(f"{tmp_path}/train.en, {tmp_path}/train.de"))
    table = open_text(TextConfig(str(tmp_path / "t.tsv"), "3", "2"))
    assert isinstance(table, FixedDataset)
    assert table.train[0].source.startswith("b ")
    assert compute_fingerprint(folder) == compute_fingerprint(files)
    assert compute_fingerprint(folder) != compute_fingerprint(table)


def test_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^data: got the folder .* and no languages, expected the two to use; fix:"):
        open_text(TextConfig(str(tmp_path)))
    (tmp_path / "t.tsv").write_text("a\tb\n")
    with pytest.raises(InputError, match=r"^column: got 'en', expected the number of a column, from 1; fix: use"):
        open_text(TextConfig(str(tmp_path / "t.tsv"), "en", "de"))
    with pytest.raises(InputError, match=r"^data: got no nowhere, expected a file or folder that exists; fix: "):
        open_text(TextConfig("nowhere"))
