"""What the tests of the whole package share."""

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Shapes are not checked, as where users run it: bad input reaches our own sentences, and nothing is slowed."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)
