"""A score, a bias, a normalizer and an aggregate, as one part of a layer."""

from torch import nn

from regard.algebra.aggregates import Aggregate, Soft
from regard.algebra.biases import Bias
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer, Softmax
from regard.algebra.scores import ScaledDot, Score
from regard.algebra.shapes import Queries, Tensor, Values, WideKeys
from regard.algebra.terms import Term
from regard.compute.attend import AttentionResult, attend
from regard.layers.memory import FULL


class Mechanism(nn.Module):
    r"""All of the algebra but the mask, which belongs to the call.

    $$ \mathrm{aggregate}(\mathrm{normalizer}(\mathrm{score}(q, k) + \mathrm{bias}, \cdot), v) $$

    The defaults are scaled dot product, no bias, softmax, and the soft aggregate. A mechanism is not changed; `replace`
    returns another one that shares the other parts.

    >>> from regard.algebra.normalizers import Sparsemax
    >>> type(Mechanism(normalizer=Sparsemax()).score).__name__
    'ScaledDot'
    """

    def __init__(
        self,
        score: Score | None = None,
        *,
        bias: Bias | None = None,
        normalizer: Normalizer | None = None,
        aggregate: Aggregate | None = None,
    ) -> None:
        super().__init__()
        self.score = ScaledDot() if score is None else score
        self.bias = bias
        self.normalizer = Softmax() if normalizer is None else normalizer
        self.aggregate = Soft() if aggregate is None else aggregate

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
        """Whether it surely treats all heads alike: no bias, no tensor with a number for each, parts that say so."""
        terms = (self.score, self.normalizer, self.aggregate)
        if self.bias is not None or any(term.tensors() for term in terms):
            return False
        return all(part.head_blind for term in terms for part in term.modules() if isinstance(part, Term))

    def list_parts(self) -> list[str]:
        """Return the names of the parts, for messages."""
        parts = (self.score, self.bias, self.normalizer, self.aggregate)
        names = [type(part).__name__ for part in parts if part is not None]
        temperature = self.normalizer.temperature if isinstance(self.normalizer, Softmax) else 1.0
        plain = not isinstance(temperature, Tensor) and temperature == 1.0
        return names if plain else [f"{n} at temperature {temperature}" if n == "Softmax" else n for n in names]

    def attend(
        self, query: Queries, key: WideKeys, value: Values, *, mask: Mask = FULL, dropout: float = 0.0
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
