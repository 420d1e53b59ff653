"""Tables that are too long for a field, or not text at all: one sentence, or read as they are."""

from pathlib import Path

import pytest

from regard.errors import InputError
from regard.tasks.data.csv_table import read_table

LONG = 200_000  # characters; a field has at most 131,072


def test_a_long_line_of_short_fields_is_read(tmp_path: Path) -> None:
    """Without tabs, a line is one field if it is split at tabs, which is tried first."""
    (tmp_path / "wide.csv").write_text(",".join(["1"] * LONG) + "\n" + ",".join(["2"] * LONG) + "\n")
    table = read_table(tmp_path / "wide.csv")
    assert (len(table.names), len(table.rows), table.separator) == (LONG, 2, ",")


@pytest.mark.parametrize("field", ["9" * LONG, f'"{"x" * LONG}"', '"' + "1,2\n" * LONG])
def test_a_field_that_is_too_long_is_one_sentence(tmp_path: Path, field: str) -> None:
    (tmp_path / "long.csv").write_text(f"a,b\n1,{field}\n3,4\n")
    sentence = r"^data: got long.csv \(field larger.*\), expected a CSV file with at most 131,072 characters in"
    with pytest.raises(InputError, match=sentence):
        read_table(tmp_path / "long.csv")


def test_a_zero_byte_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "nul.csv").write_bytes(b"a,b\n1,2\n3,\0\n")
    with pytest.raises(InputError, match=r"^nul.csv: got byte 0x00 in line 3, expected UTF-8 text; fix: "):
        read_table(tmp_path / "nul.csv")
