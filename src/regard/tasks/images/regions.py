"""The regions of a square grid, row by row."""


def get_grid_shape(regions: int) -> tuple[int, int]:
    """How many there are down and across."""
    side = round(regions**0.5)
    return side, side


def name_regions(regions: int) -> list[str]:
    """Row and column of each region of a square grid, from 1.

    >>> name_regions(4)
    ['1,1', '1,2', '2,1', '2,2']
    """
    side, _ = get_grid_shape(regions)
    return [f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)]
