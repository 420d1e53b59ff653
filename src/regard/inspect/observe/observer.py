"""Looking at a model while it works, without changing a bit of what it gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Tensor, describe
from regard.compute.watchers import WATCHERS
from regard.compute.weights import Weights
from regard.errors import wrong, wrong_kind
from regard.inspect.observe import own_attention
from regard.inspect.observe.caches import wrap_cache_update
from regard.inspect.observe.calls import RowwiseCall, SoftmaxCall
from regard.inspect.observe.hooks import HOOKS
from regard.inspect.observe.key_offsets import KeyOffsets
from regard.inspect.observe.patches import CALL, SOFTMAX, UPDATE, Replacer, patch_functions, wrap_with_hook
from regard.inspect.observe.sites import Site, Sites
from regard.inspect.observe.softmax_hook import observe_softmax
from regard.inspect.observe.unseen_modules import describe_unseen, wrap_module_call
from regard.inspect.recording import AttentionMap, Recording

Keep = Literal["weights", "tiles", "statistics"]
KEEPS = ("weights", "tiles", "statistics")
REPLACEMENTS: dict[str, Replacer] = {
    name: wrap_with_hook(told) for name, told in {**HOOKS, SOFTMAX: observe_softmax}.items()
}
REPLACEMENTS |= {CALL: wrap_module_call, UPDATE: wrap_cache_update}
NOTHING = "no attention was computed in this thread outside of compiled graphs"
COMPILED = 'torch.compile made a graph of it; run it inside torch.compiler.set_stance("force_eager")'


class ObserveOptions(NamedTuple):
    """What is to be looked at, and how much of it kept."""

    sites: str
    keep: Keep
    top: int
    item: int
    limit: int


class Observer:
    """Puts what the modules of one model attend to into a recording."""

    def __init__(self, model: nn.Module, recording: Recording, wanted: ObserveOptions) -> None:
        self.sites, self.recording, self.wanted = Sites(model), recording, wanted
        self.item, self.left, self.others = wanted.item, wanted.limit, False
        self.positions = KeyOffsets()
        self.called: set[int] = set()  # modules by identity
        self.known: set[str] = set()  # sites that were seen, or of which a note says why not

    def find_site(self, part: str | None = None) -> Site | None:
        """The site that is computing, or a `part` of it, where it is one to be looked at."""
        site = self.sites.find_current()
        if site is None:
            return None
        if part is not None:
            module = site.module.get_submodule(part)
            site = Site(self.sites.names[id(module)], module)
        return site if self.wants(site.name) else None

    def wants(self, name: str) -> bool:
        """Whether a site is one to be looked at."""
        wanted = fnmatchcase(name, self.wanted.sites)
        self.others |= not wanted
        return wanted

    def expect(self, name: str, keys: int, offset: int | None) -> None:
        """Take the word of a cache where the keys of the next call are."""
        self.positions.expect(name, keys, offset)

    def find_called_sites(self) -> list[Site]:
        """The modules that were called and are to be looked at."""
        modules = [module for module in self.sites.model.modules() if id(module) in self.called]
        called = [Site(self.sites.names[id(module)], module) for module in modules]
        return [site for site in called if fnmatchcase(site.name, self.wanted.sites)]

    def on_attention(self, weights: Weights | Tensor) -> None:
        """Our own attention."""
        site = self.find_site()
        if site is None:
            return
        with torch.no_grad():
            if isinstance(weights, Tensor):
                self.add(site.name, own_attention.build_tensor_call(weights, self.item))
            else:
                self.add(site.name, own_attention.build_handle_call(weights, site.module, self.item))

    def add(self, name: str, look: SoftmaxCall | RowwiseCall, first: Tensor | None = None) -> None:
        """Keep as much of it as is asked for and fits; `first` is its first key."""
        self.known.add(name)
        if 0 in look.shape:
            self.recording.notes.append(f"{name}: not kept, because it has {look.shape} heads, queries and keys")
            return
        offset = self.positions.resolve_offset(name, look.shape[2], first)
        seen, note = self._keep(look)
        if seen is not None:
            self.left -= seen.bytes
            name = self.recording.add(name, seen, offset)
        if note:
            self.recording.notes.append(f"{name}: {note}")

    def note_missed(self, name: str, reason: str) -> None:
        """Say that something was attended to and not seen."""
        self.known.add(name)
        self.recording.notes.append(f"{name}: not seen: {reason}")

    def _keep(self, look: SoftmaxCall | RowwiseCall) -> tuple[AttentionMap | None, str | None]:
        """As much as is wanted and fits, and what to say where it is less."""
        keep, top = self.wanted.keep, self.wanted.top
        room = f"{look.dense_bytes:,} bytes of weights, {max(0, self.left):,} of {self.wanted.limit:,} left"
        if keep == "weights" and look.dense_bytes <= self.left:
            return look.to_dense(), None
        sketch = look.count_sketch_bytes(top)
        if keep != "statistics" and isinstance(look, SoftmaxCall) and look.factors_bytes + sketch <= self.left:
            return look.to_factored(top), f"kept as factors and statistics ({room})" if keep == "weights" else None
        if sketch <= self.left:
            return look.to_sketch(top), None if keep == "statistics" else f"kept as statistics ({room})"
        return None, f"not kept ({room})"


@contextmanager
def observe(
    model: nn.Module,
    *,
    sites: str = "*",
    keep: Keep = "weights",
    top: int = 8,
    item: int = 0,
    limit: int = 2**28,
) -> Iterator[Recording]:
    """Record where a model looks, at each of its modules whose path matches `sites`, for one `item` of the batch.

    The output of the model is the same to the last bit, and so is the way it is computed. `keep` says how much is
    kept: all weights, as long as the recording stays within `limit` bytes; factors that any tile of weights is
    found from; or statistics with the `top` largest weights of each query. What does not fit is kept in the next
    way, and a note of the recording says so. Weights are those before dropout.

    Seen are this library's own attention, `nn.MultiheadAttention` and what is made of it, whatever calls
    `F.scaled_dot_product_attention`, transformers' models in their default and in eager attention, and the softmax of
    (batch, heads, queries, keys) of any module that is called Attention or projects queries and keys. A module that
    looks like attention and was called without being seen is named in the notes. What torch.compile has compiled calls
    none of these: a note says which modules were not seen for that, and inside
    `torch.compiler.set_stance("force_eager")` they are. Threads that do not observe record nothing.

    >>> model = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> with observe(model) as recording:
    ...     _ = model(*[torch.zeros(1, 3, 4)] * 3, need_weights=False)
    >>> recording["MultiheadAttention"].dense()[0, 0]
    tensor([0.3333, 0.3333, 0.3333])
    """
    check_options(model, keep, top, item, limit)
    recording = Recording()
    observer = Observer(model, recording, ObserveOptions(sites, keep, top, item, limit))
    with patch_functions(model, REPLACEMENTS):
        token = WATCHERS.set((*WATCHERS.get(), observer))
        try:
            yield recording
        finally:
            WATCHERS.reset(token)
    note_unseen(observer, model)


def note_unseen(observer: Observer, model: nn.Module) -> None:
    """Say what was computed and not seen."""
    recording, sites = observer.recording, observer.wanted.sites
    for name in find_compiled(model):
        if not any(site.startswith(name) for site in recording):
            observer.note_missed(name or type(model).__name__, COMPILED)
    recording.notes += describe_unseen(observer.find_called_sites(), observer.known)
    if not recording and not recording.notes:
        why = f"no site matches '{sites}'" if observer.others else NOTHING
        recording.notes.append(f"nothing was seen: {why}")


def find_compiled(model: nn.Module) -> list[str]:
    """The paths of the modules that torch.compile has wrapped, or will call a graph in the place of."""
    marks = ("_orig_mod", "_compiled_call_impl")
    return [
        name for name, part in model.named_modules() if any(getattr(part, mark, None) is not None for mark in marks)
    ]


def check_options(model: nn.Module, keep: str, top: int, item: int, limit: int) -> None:
    """Raise where something cannot be meant."""
    if not isinstance(model, nn.Module):
        raise wrong_kind("model", describe(model), "an nn.Module", "give the model itself")
    if keep not in KEEPS:
        raise wrong("keep", repr(keep), f"one of {', '.join(KEEPS)}", "say how much is to be kept")
    for name, number, least in (("top", top, 1), ("item", item, 0), ("limit", limit, 1)):
        if number < least:
            raise wrong(name, number, f"at least {least}", "count from there")
