"""`regard bench`: a quick table for this machine, against plain torch. The full suite with peers is `make bench`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from regard.cli.output import open_console
from regard.errors import wrong

if TYPE_CHECKING:
    from torch import Tensor

    from regard.compute.timing import Spread

Run = Callable[[], object]


class BenchmarkPair(NamedTuple):
    """Two ways to compute the same: by regard and by plain torch, with the backward pass or without."""

    what: str
    plain: str
    ours: Run
    theirs: Run
    backward: bool


def bench(*, seconds: float = 15.0, threads: int | None = None) -> None:
    """Time the main mechanisms against plain torch on this machine; let nothing else run meanwhile.

    Parameters
    ----------
    seconds
        About how long it takes.
    threads
        How many torch may use; as many as it uses by itself if it is not given.
    """
    import torch

    from regard.cli import machine
    from regard.compute import timing

    if not seconds > 0:
        raise wrong("--seconds", seconds, "a number above 0", "write --seconds 15")
    if threads is not None:
        torch.set_num_threads(threads)
    console, found = open_console(), machine.describe_machine()
    console.print(f"{torch.get_num_threads()} threads on {found.processor}, torch {found.torch}", highlight=False)
    table = Table("times faster", "what", "regard", "plain torch", box=None, pad_edge=False)
    pairs, watch = list(_build_pairs()), machine.LoadMonitor()
    budget = timing.Budget(seconds=seconds / len(pairs) / 1.5, least=3, most=50, sample=0.01)
    for pair in pairs:
        with console.status(pair.what):
            samples = timing.interleave({"ours": pair.ours, "theirs": pair.theirs}, budget)
        ratio = timing.summarize_ratios(samples["theirs"], samples["ours"])
        ours, theirs = (_format_milliseconds(timing.summarize(samples[name])) for name in ("ours", "theirs"))
        passes = "both passes" if pair.backward else "forward"
        faster = f"[bold]{ratio.median:.3g}[/bold] ({ratio.low:.3g}–{ratio.high:.3g})"
        table.add_row(faster, f"{pair.what}, {passes}", ours, f"{theirs} {pair.plain}")
    console.print(table)
    others = watch.measure_load()
    if others > machine.QUIET:
        console.print(f"other processes kept {others:.1f} cores busy meanwhile: do not trust these times", style="red")


def _format_milliseconds(spread: "Spread") -> str:
    return f"{1e3 * spread.median:.3g} ms"


def _build_pairs() -> Iterator[BenchmarkPair]:
    yield from _build_additive()
    yield from _build_dots()
    yield _build_window()
    yield from _build_normalizers()
    yield from _build_multihead()


def _build_additive() -> Iterator[BenchmarkPair]:
    """Compare with the definition, which textbooks and libraries run: it builds a tensor queries × keys × hidden."""
    import regard

    query, key, value = (_draw(4, 128, 128) for _ in range(3))
    score = regard.Additive.projected(128)
    for leaves in ((), (query, key)):
        yield _build_pair(
            "additive 4×128×128",
            "tanh",
            lambda: regard.attend(query, key, value, score=score).output,
            lambda: regard.attend(query, key, value, score=score, backend="eager").output,
            *leaves,
        )


def _build_dots() -> Iterator[BenchmarkPair]:
    import torch
    import torch.nn.functional as F

    import regard

    query, key, value = (_draw(2, 8, 512, 64) for _ in range(3))
    gaussian = regard.Gaussian(bandwidth=8.0)
    yield _build_pair(
        "Gaussian 2×8×512×512",
        "torch.cdist",
        lambda: regard.attend(query, key, value, score=gaussian).output,
        lambda: torch.softmax(-0.5 * (torch.cdist(query, key) / 8.0) ** 2, dim=-1) @ value,
    )
    yield _build_pair(
        "dot 2×8×512×512",
        "SDPA",
        lambda: regard.attend(query, key, value).output,
        lambda: F.scaled_dot_product_attention(query, key, value),
    )


def _build_window() -> BenchmarkPair:
    import torch.nn.functional as F

    import regard

    query, key, value = leaves = tuple(_draw(1, 1, 4096, 64) for _ in range(3))
    mask = regard.Window(before=127, after=0)
    table = mask.table(4096, 4096)
    return _build_pair(
        "window 128 of 4,096",
        "SDPA + mask",
        lambda: regard.attend(query, key, value, mask=mask).output,
        lambda: F.scaled_dot_product_attention(query, key, value, table),
        *leaves,
    )


def _build_normalizers() -> Iterator[BenchmarkPair]:
    """Compare with softmax: torch has no sparse normalizer, so that a factor of 1 is out of reach."""
    import torch

    import regard
    from regard.algebra.pairs import Pairs

    scores, pairs = _draw(4, 8, 256, 256), Pairs(256, 256)
    allowed = regard.Full().allows(pairs)
    for name, part in (("sparsemax", regard.Sparsemax()), ("entmax-1.5", regard.Entmax15())):
        ours = partial(part, scores, allowed, pairs)
        yield _build_pair(f"{name} 4×8×256×256", "softmax", ours, lambda: torch.softmax(scores, dim=-1), scores)


def _build_multihead() -> Iterator[BenchmarkPair]:
    """Compare with `nn.MultiheadAttention` of the same parameters, first without and then with its weights.

    Our layer measures entropy and the five largest weights of each query without leaving its fused call.
    """
    from torch import nn

    from regard.layers import Attention

    module = nn.MultiheadAttention(256, 8, batch_first=True)
    layer, x = Attention.from_torch(module), _draw(4, 256, 256)

    def attend_and_measure() -> "Tensor":
        attended, _ = layer.attend_self(x)
        attended.weights.entropy()
        attended.weights.top(5)
        return attended.output

    yield _build_pair(
        "multi-head 4×256×256",
        "nn module",
        lambda: layer.attend_self(x)[0].output,
        lambda: module(x, x, x, need_weights=False)[0],
        x,
    )
    yield _build_pair(
        "… measured",
        "with weights",
        attend_and_measure,
        lambda: module(x, x, x, average_attn_weights=False)[0],
        x,
    )


def _draw(*shape: int) -> "Tensor":
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).requires_grad_()


def _build_pair(
    what: str, plain: str, ours: "Callable[[], Tensor]", theirs: "Callable[[], Tensor]", *leaves: "Tensor"
) -> BenchmarkPair:
    """Return a pair of runs: with leaves both passes, without leaves the forward pass without a graph."""
    return BenchmarkPair(what, plain, _build_run(ours, leaves), _build_run(theirs, leaves), bool(leaves))


def _build_run(forward: "Callable[[], Tensor]", leaves: "tuple[Tensor, ...]") -> Run:
    import torch

    def run() -> object:
        if leaves:
            output = forward()
            return torch.autograd.grad(output, leaves, torch.ones_like(output))
        with torch.no_grad():
            return forward()

    return run
