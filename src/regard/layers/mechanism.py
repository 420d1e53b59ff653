"""A score, a bias, a normalizer and an aggregate, as one part of a layer."""

from typing import Any

from torch import nn

from regard.algebra.aggregates import Aggregate, Soft
from regard.algebra.biases import Bias
from regard.algebra.catalog import Sizes, build_named
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer, Softmax
from regard.algebra.parts import Parts
from regard.algebra.scores import ScaledDot, Score
from regard.algebra.shapes import Queries, Tensor, Values, WideKeys, describe
from regard.compute.attend import AttentionResult, attend
from regard.errors import wrong_kind
from regard.layers.memory import FULL


class Mechanism(nn.Module):
    r"""All of the algebra but the mask, which belongs to the call.

    $$ \mathrm{aggregate}(\mathrm{normalizer}(\mathrm{score}(q, k) + \mathrm{bias}, \cdot), v) $$

    The defaults are scaled dot product, no bias, softmax, and the soft aggregate. A part may be given by its name in
    the catalog; one with parameters is then built for `sizes`. A mechanism is not changed; `replace` returns another
    one that shares the other parts.

    >>> Mechanism("gaussian", normalizer="sparsemax").list_parts()
    ['Gaussian', 'Sparsemax', 'Soft']
    """

    def __init__(
        self,
        score: Score | str | None = None,
        *,
        bias: Bias | str | None = None,
        normalizer: Normalizer | str | None = None,
        aggregate: Aggregate | str | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        super().__init__()
        self.score: Score = choose_part("score", score, Score, sizes) or ScaledDot()
        self.bias: Bias | None = choose_part("bias", bias, Bias, sizes)
        self.normalizer: Normalizer = choose_part("normalizer", normalizer, Normalizer, sizes) or Softmax()
        self.aggregate: Aggregate = choose_part("aggregate", aggregate, Aggregate, sizes) or Soft()

    def replace(
        self,
        *,
        score: Score | None = None,
        bias: Bias | None = None,
        normalizer: Normalizer | None = None,
        aggregate: Aggregate | None = None,
    ) -> "Mechanism":
        """Return a mechanism with the given parts replaced, for example by one that a call predicted."""
        return Mechanism(
            self.score if score is None else score,
            bias=self.bias if bias is None else bias,
            normalizer=self.normalizer if normalizer is None else normalizer,
            aggregate=self.aggregate if aggregate is None else aggregate,
        )

    @property
    def uniform(self) -> bool:
        """Whether it surely treats all heads alike."""
        return Parts(self.score, self.bias, FULL, self.normalizer, self.aggregate).uniform

    def list_parts(self) -> list[str]:
        """Return the names of the parts, for messages."""
        parts = (self.score, self.bias, self.normalizer, self.aggregate)
        names = [type(part).__name__ for part in parts if part is not None]
        temperature = self.normalizer.temperature if isinstance(self.normalizer, Softmax) else 1.0
        plain = not isinstance(temperature, Tensor) and temperature == 1.0
        return names if plain else [f"{n} at temperature {temperature}" if n == "Softmax" else n for n in names]

    def attend(
        self, query: Queries, key: WideKeys, value: Values, *, mask: Mask | str | None = FULL, dropout: float = 0.0
    ) -> AttentionResult:
        """Attend to these keys and values under this mask."""
        return attend(
            query,
            key,
            value,
            score=self.score,
            bias=self.bias,
            mask=mask,
            normalizer=self.normalizer,
            aggregate=self.aggregate,
            dropout=dropout,
        )


def choose_part(family: str, part: Any, kind: type, sizes: Sizes | None) -> Any:
    """Return the part itself, None, or that of this name in the catalog; raise if it is of another family."""
    if isinstance(part, str):
        return build_named(family, part, sizes or Sizes(64, 64, 64), trained=sizes is not None)
    if part is not None and not isinstance(part, kind):
        expected = f"a {kind.__name__}, or its name in the catalog"
        fix = "see `regard list` for all of them"
        if isinstance(part, bool):  # what torch's module calls so
            fix = f"leave it out, or write Attention(PackedProjections(64, heads=8, bias={part})) for linear maps"
        raise wrong_kind(family, describe(part), expected, fix)
    return part


def choose_mask(mask: Mask | str | None) -> Mask:
    """Return the mask itself, or that of this name in the catalog; none hides nothing."""
    if mask is None:
        return FULL
    return build_named("mask", mask, Sizes(1, 1, 1), trained=False) if isinstance(mask, str) else mask
