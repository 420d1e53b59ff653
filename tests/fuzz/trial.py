"""One random attention, as the lines of Python that build it: the printed script is what runs."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from regard.compute.lowering import spans

IMPORTS = (
    "import torch; from regard import *; from regard.algebra.catalog import *; "
    "from regard.algebra.parts import Parts; "
    "from regard.compute.verification import cast_parts, compute_reference, run_backend"
)
BLOCKS = "from regard.compute.lowering import spans; spans.SMALLEST, spans.LARGEST = 2, 3"
BLOCKS += "; spans.choose_rows_per_block = lambda per_row, queries: min(2, queries)"
SEQUENTIAL = ("onotonic", "chunkwise")  # a row of these depends on the rows before


@dataclasses.dataclass(frozen=True)
class Trial:
    """The settings of one trial, as text and numbers. Parts are expressions over the catalog."""

    seed: int = 0
    score: str = 'SCORES["scaled-dot"](s)'
    bias: str = "None"
    mask: str = "Full()"
    normalizer: str = "Softmax()"
    aggregate: str = "Soft()"
    lead: tuple[int, ...] = ()
    leads: tuple[tuple[int, ...], ...] = ((), (), ())  # of query, key and value: they broadcast to `lead`
    queries: int = 3
    keys: int = 4
    dim: int = 2
    key_dim: int = 2
    value: int = 1
    layouts: tuple[str, str, str] = ("plain", "plain", "plain")
    scale: float = 1.0
    offset: float = 0.0
    mixed: bool = False  # the offset is added to some rows only
    dtype: str = "float64"
    hidden: str = ""  # what hidden keys and values hold
    where: str = "both"  # key, value or both
    column: int = -1  # a key that is overwritten although some queries see it
    transform: str = "plain"
    dropout: float = 0.0
    small_blocks: bool = False
    backend: str = "all"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of query, key and value."""
        ends = (self.queries, self.dim), (self.keys, self.key_dim), (self.keys, self.value)
        return tuple((*lead, *end) for lead, end in zip(self.leads, ends, strict=True))

    @property
    def is_soft(self) -> bool:
        """Return whether the output is the average of the values by the weights."""
        return self.aggregate == "Soft()" and not self.dropout

    @property
    def is_sequential(self) -> bool:
        """Return whether a row of weights depends on the rows before."""
        return any(word in self.normalizer for word in SEQUENTIAL)

    def lines(self) -> list[str]:
        """Return the lines that build parts and tensors."""
        names = "score", "bias", "mask", "normalizer", "aggregate"
        parts = ", ".join(str(getattr(self, name)) for name in names)
        sizes = f"{self.dim}, {self.key_dim}, {self.value}, {self.lead}, {self.queries}, {self.keys}"
        tensors = [
            f"{name} = {self._write_tensor(index)}.requires_grad_()" for index, name in enumerate(("q", "k", "v"))
        ]
        lines = [IMPORTS]
        lines += [BLOCKS] if self.small_blocks else []
        lines += [f"torch.manual_seed({self.seed}); s, dtype = Sizes({sizes}), torch.{self.dtype}"]
        lines += [f"parts = cast_parts(Parts({parts}), dtype, jitter=0.1)", *tensors]
        return lines + ([self._write_dirt()] if self.hidden else [])

    def _write_tensor(self, index: int) -> str:
        """Return an expression for the tensor at `index`: query, key or value."""
        return lay_out(self.layouts[index], self.shapes[index], self.scale, self.offset, self.mixed and index < 2)

    def _write_dirt(self) -> str:
        """Return the line that overwrites hidden keys and values and marks the rows that see one."""
        line = f"seen = parts.mask.table({self.queries}, {self.keys}).expand(*s.lead, -1, -1); "
        full = self.leads[1] == self.leads[2] == self.lead
        line += "hit = ~seen.any(-2)" if full else f"hit = ~seen.reshape(-1, {self.keys}).any(0)"
        line += f"; hit[..., {self.column}] = True" if self.column >= 0 else ""
        content = f'float("{self.hidden}")'
        for name, other in (("k", "value"), ("v", "key")):
            copied = f"torch.where(hit[..., None], torch.tensor({content}).to(dtype), {name}).detach().requires_grad_()"
            line += f"; dirty_{name} = " + (name if self.where == other else copied)
        return line

    def build(self) -> dict[str, Any]:
        """Run the lines and return their names: `parts`, `q`, `k`, `v`, and those of `_dirt`."""
        names: dict[str, Any] = {}
        exec("\n".join(line for line in self.lines() if line != BLOCKS), names)  # the caller uses `small_blocks`
        return names

    def write(self) -> str:
        """Return the trial as JSON, without the fields that have their default."""
        return json.dumps({n: v for n, v in dataclasses.asdict(self).items() if v != getattr(Trial(), n)}, indent=1)

    @classmethod
    def read(cls, text: str) -> "Trial":
        """Return the trial that `write` wrote."""
        return cls(**{name: to_tuples(value) for name, value in json.loads(text).items()})


class Failure(NamedTuple):
    """A property that does not hold."""

    property: str
    backend: str
    message: str


def format_error(error: Exception) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def to_tuples(value: Any) -> Any:
    """Return JSON's lists as the tuples that they were."""
    return tuple(map(to_tuples, value)) if isinstance(value, list) else value


def lay_out(layout: str, shape: tuple[int, ...], scale: float, offset: float, mixed: bool) -> str:
    """Return an expression for random numbers in that layout."""
    *lead, rows, width = shape
    base, view = {
        "plain": (shape, ""),
        "transposed": ((*lead, width, rows), ".transpose(-1, -2)"),
        "sliced": ((*lead, rows, 2 * width), "[..., ::2]"),
        "skipped": ((*lead, 2 * rows, width), "[..., ::2, :]"),
        "packed": ((*lead, rows, 3 * width), f"[..., {width}:{2 * width}]"),
        "heads": ((*lead[:-1], rows, *lead[-1:], width), ".transpose(-2, -3)" if lead else ""),
        "same-rows": ((*lead, 1, width), f".expand({shape})"),
        "same-lead": ((rows, width), f".expand({shape})"),
        "same-width": ((*lead, rows, 1), f".expand({shape})"),
        "overlapping": ((sum(shape),), f".as_strided({shape}, {(1,) * len(shape)})"),
        "moved": ((torch.Size(shape).numel() + 3,), f"[3:].view({shape})"),
    }[layout]
    numbers = f"torch.randn({tuple(base)}, dtype=torch.float64)"
    numbers += f" * {scale}" if scale != 1 else ""
    if offset:
        numbers += f" + {offset}" + (f" * (torch.rand({(*base[:-1], 1)}) < 0.3)" if mixed else "")
    return f"({numbers}).to(dtype){view}"


@contextlib.contextmanager
def use_small_blocks(trial: Trial) -> Iterator[None]:
    """Use blocks of two queries if the trial asks for them."""
    before = spans.SMALLEST, spans.LARGEST, spans.choose_rows_per_block
    try:
        if trial.small_blocks:
            exec(BLOCKS, {})
        yield
    finally:
        spans.SMALLEST, spans.LARGEST, spans.choose_rows_per_block = before
