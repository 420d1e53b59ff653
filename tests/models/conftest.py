"""Lets these tests import the small models, and runs them over every kind."""

import sys
from pathlib import Path
from typing import Any

import pytest

from regard.models import EncoderDecoder

sys.path.insert(0, str(Path(__file__).parent))

from small_models import CONFIGS, make


@pytest.fixture(params=CONFIGS)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def model(name: str) -> EncoderDecoder[Any]:
    return make(name)
