"""Names for the regions of a grid."""


def region_names(regions: int) -> list[str]:
    """Row and column of each region of a square grid, from 1.

    >>> region_names(4)
    ['1,1', '1,2', '2,1', '2,2']
    """
    side = round(regions**0.5)
    return [f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)]
