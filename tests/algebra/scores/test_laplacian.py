"""The Laplacian kernel."""

import torch

from regard import Laplacian


def test_it_falls_with_the_sum_of_absolute_differences() -> None:
    query, key = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, -4.0], [0.0, 2.0], [0.0, 0.0]])
    assert Laplacian(bandwidth=0.5)(query, key).tolist() == [[-14.0, -4.0, -0.0]]


def test_each_head_has_its_own_bandwidth() -> None:
    bandwidths = torch.tensor([0.5, 1.0, 3.0])
    query, key = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11)
    together, plain = Laplacian(bandwidths)(query, key), Laplacian(1.0)(query, key)
    for head, bandwidth in enumerate(bandwidths.tolist()):
        assert torch.allclose(together[:, head], plain[:, head] / bandwidth, rtol=1e-5)


def test_the_streamed_distances_are_the_written_out_ones() -> None:
    score = Laplacian.learned(0.7, heads=3).double()
    query, key = torch.randn(2, 3, 5, 11, dtype=torch.float64), torch.randn(2, 1, 7, 11, dtype=torch.float64)
    assert torch.allclose(score.stream(query, key), score(query, key), rtol=0, atol=1e-13)
