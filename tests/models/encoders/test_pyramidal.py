"""The pyramid: each layer reads pairs of the one below, and padding changes nothing."""

import pytest
import torch
from torch import nn

from regard.errors import InputError
from regard.models.encoders.pyramidal import PyramidalEncoder

B, T, F, H = 3, 23, 5, 7
LENGTHS = torch.tensor([23, 9, 14])


@pytest.fixture
def encoder() -> PyramidalEncoder:
    torch.manual_seed(3)
    layers = [nn.LSTM(2 * F, H, bidirectional=True), nn.LSTM(4 * H, H, bidirectional=True)]
    return PyramidalEncoder(layers, stack=2).double().eval()


def test_it_is_torchs_lstm_on_pairs_of_states(encoder: PyramidalEncoder) -> None:
    frames = torch.randn(1, 16, F, dtype=torch.float64)
    below, _ = encoder.layers[0](frames.reshape(8, 1, 2 * F))
    above, _ = encoder.layers[1](below.reshape(4, 1, 4 * H))
    found = encoder(frames, torch.tensor([16]))
    assert torch.allclose(found.states[0], above[:, 0], atol=1e-12)
    assert torch.allclose(found.summary[0], torch.cat([above[-1, 0, :H], above[0, 0, H:]]), atol=1e-12)


def test_padding_and_company_do_not_matter(encoder: PyramidalEncoder) -> None:
    frames = torch.randn(B, T, F, dtype=torch.float64)
    for row, length in enumerate(LENGTHS.tolist()):
        frames[row, length:] = float("nan")
    together = encoder(frames, LENGTHS)
    assert together.lengths.tolist() == [6, 3, 4]
    assert not together.states.isnan().any()
    for row, length in enumerate(LENGTHS.tolist()):
        alone = encoder(frames[row : row + 1, :length], LENGTHS[row : row + 1])
        assert torch.allclose(together.states[row, : together.lengths[row]], alone.states[0], atol=1e-12)
        assert torch.allclose(together.summary[row], alone.summary[0], atol=1e-12)


def test_a_pyramid_without_layers_is_refused() -> None:
    with pytest.raises(InputError, match="layers: got none, expected at least one layer of cells"):
        PyramidalEncoder([])
