"""Rows of one flat array: the same as the lists they were made of, however they are chosen."""

from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.data.rows import Rows

lists = st.lists(st.lists(st.integers(0, 2**16 - 1), max_size=7), max_size=11)


@given(lists, st.data())
def test_rows_are_the_lists_they_were_made_of(wanted: list[list[int]], data: st.DataObject) -> None:
    rows = Rows.flatten(wanted, "uint16")
    assert [row.tolist() for row in rows] == wanted
    assert rows.lengths.tolist() == list(map(len, wanted))
    part = data.draw(st.slices(len(wanted)))
    assert [row.tolist() for row in rows[part]] == wanted[part]
    chosen = data.draw(st.lists(st.integers(0, len(wanted) - 1))) if wanted else []
    some = rows[::-1].select(chosen)
    assert [row.tolist() for row in some] == [wanted[::-1][index] for index in chosen]
    assert some.lengths.tolist() == [len(wanted[::-1][index]) for index in chosen]
    assert [rows[-1].tolist()] == wanted[-1:] if wanted else not len(rows)
