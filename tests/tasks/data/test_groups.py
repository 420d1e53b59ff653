"""Connected groups in arrays are those of following one link after another."""

import numpy
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.data.groups import group_equal


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=1, max_size=31))
def test_groups_are_those_of_following_links(pairs: list[tuple[int, int]]) -> None:
    wanted, left = [], list(range(len(pairs)))
    while left:
        group, before = {left[0]}, 0
        while len(group) > before:
            before = len(group)
            group |= {i for i in left for j in group if pairs[i][0] == pairs[j][0] or pairs[i][1] == pairs[j][1]}
        wanted.append(sorted(group))
        left = [index for index in left if index not in group]
    sides = [numpy.array(side, dtype=numpy.uint64) for side in zip(*pairs, strict=True)]
    found = group_equal(sides)
    assert [found.list_members([group]).tolist() for group in range(len(found.sizes))] == wanted


def test_a_long_chain_is_one_group() -> None:
    numbers = numpy.random.default_rng(3).permutation(5001)
    links = numpy.arange(5001)[numpy.argsort(numbers)]
    found = group_equal([links // 2, (links + 1) // 2])
    assert found.sizes.tolist() == [5001]
