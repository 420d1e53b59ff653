"""The regions of a square grid, row by row."""


def grid_of(regions: int) -> tuple[int, int]:
    """How many there are down and across."""
    side = round(regions**0.5)
    return side, side


def region_names(regions: int) -> list[str]:
    """Row and column of each region of a square grid, from 1.

    >>> region_names(4)
    ['1,1', '1,2', '2,1', '2,2']
    """
    side, _ = grid_of(regions)
    return [f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)]
