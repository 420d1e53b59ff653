"""From a configuration to a model."""

from dataclasses import replace

import pytest

from regard.layers.blocks import FeedForward
from regard.models.builder import build_model
from regard.models.config import PRESETS


@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_only_a_rate_of_its_own_drops_inside_the_feed_forward_network(rate: float) -> None:
    preset = PRESETS["transformer-tiny"]
    model = build_model(
        replace(preset, transformer=replace(preset.transformer, hidden_dropout=rate)), source=11, target=11
    )
    networks = [part for part in model.modules() if isinstance(part, FeedForward)]
    assert [part.dropout for part in networks] == [rate] * 8
