"""Features of the weights so far, added to the keys: location-aware attention and coverage.

Neither needs a score of its own: features of the weights so far are added to the keys of the memory, and the
additive score does the rest. The weights so far are passed in and out, never kept in a layer.
"""

from torch import nn

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong
from regard.layers.memory import Memory
from regard.layers.projections import build_linear


def build_initial_weights(memory: Memory) -> Float[Tensor, "*lead key"]:
    """Return the weights before the first step: zeros.

    >>> build_initial_weights(Memory(torch.ones(2, 3, 5), torch.ones(2, 3, 7)))
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return memory.key.new_zeros(memory.key.shape[:-1])


class LocationFeatures(nn.Module):
    r"""Adds features of the last weights to the keys, by convolution along the keys.

    $$ f_i = F * \alpha_{i-1}, \qquad e_{ij} = w^\top \tanh(W s_{i-1} + V h_j + U f_{ij} + b) $$

    with $F$ = `filters`, $U$ = `features`, $\alpha$ = `previous`, and $V h_j + b$ the memory's key. Chorowski et al.
    2015, eq. 8-9.

    >>> memory = Memory(torch.zeros(2, 7, 5), torch.zeros(2, 7, 3))
    >>> LocationFeatures(5)(memory, build_initial_weights(memory)).key.shape
    torch.Size([2, 7, 5])
    """

    def __init__(self, hidden: int, *, channels: int = 10, width: int = 31) -> None:
        super().__init__()
        if width < 1 or width % 2 == 0:
            raise wrong("width", width, "an odd number, so that the filter has a middle", f"use {max(1, width + 1)}")
        self.filters = nn.Conv1d(1, channels, width, padding=width // 2, bias=False)
        self.features = build_linear(channels, hidden, bias=False)

    def forward(self, memory: Memory, previous: Float[Tensor, "*lead key"]) -> Memory:
        around = self.filters(previous.reshape(-1, 1, previous.shape[-1])).transpose(-1, -2)
        features: Tensor = self.features(around)
        return memory.add_to_keys(features.reshape(*previous.shape, -1))


class Coverage(nn.Module):
    r"""Adds to each key how much attention it has received.

    $$ c_i = \sum_{i' < i} \alpha_{i'}, \qquad e_{ij} = w^\top \tanh(W s_i + V h_j + u\, c_{ij} + b) $$

    with $u$ = `features` and $c$ = `coverage`, which the caller adds the weights of each step to. See et al. 2017, eq.
    10-11; Tu et al. 2016, eq. 7 without fertility.

    >>> memory = Memory(torch.zeros(2, 7, 5), torch.zeros(2, 7, 3))
    >>> Coverage(5)(memory, build_initial_weights(memory)).key.shape
    torch.Size([2, 7, 5])
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.features = build_linear(1, hidden, bias=False)

    def forward(self, memory: Memory, coverage: Float[Tensor, "*lead key"]) -> Memory:
        features: Tensor = self.features(coverage[..., None])
        return memory.add_to_keys(features)


def coverage_loss(weights: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query"]:
    r"""Return how much of its attention each step gives to keys that had some before.

    $$ \ell_i = \sum_j \min(\alpha_{ij}, c_{ij}), \qquad c_i = \sum_{i' < i} \alpha_{i'} $$

    with $\alpha$ = `weights` of all steps. See et al. 2017, eq. 12. It is 0 at the first step and at most the total of
    a row: average it over the steps that are not padding.

    >>> coverage_loss(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.5000])
    """
    covered = weights.cumsum(-2) - weights
    return weights.minimum(covered).sum(-1)
