"""What `regard explain` explains first."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("softmax", "normalizer softmax (Softmax)"),
        ("掩蔽 softmax", "normalizer softmax (Softmax)"),
        ("causal", "mask causal (Causal)"),
        ("有效长度", "mask lengths (Lengths)"),
        ("硬注意力", "aggregate argmax (Argmax)"),
        ("T5", "bias relative (Relative)"),
        ("高斯核", "score gaussian (Gaussian)"),
        ("self-attention", "layer attention (Attention)"),
        ("层规范化", "layer residual (Residual)"),
    ],
)
def test_what_is_asked_for_is_explained_first(regard: Callable[..., Any], name: str, title: str) -> None:
    assert regard("explain", name).output.startswith(f"{title}\n")
