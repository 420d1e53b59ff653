"""Choose which attention of a model is recorded, and how much of it."""

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, get_args

import torch
from torch import nn

from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Tensor
from regard.compute.weights import Weights
from regard.inspect.observe.calls import ObservedCall, SoftmaxCall
from regard.inspect.observe.key_offsets import KeyOffsets
from regard.inspect.observe.own_attention import build_handle_call, build_tensor_call, count_head_axes
from regard.inspect.observe.sites import Site, Sites
from regard.inspect.recording import AttentionMap, DenseMap, Recording

Keep = Literal["weights", "tiles", "statistics"]
KEEPS: tuple[str, ...] = get_args(Keep)


class ObserveOptions(NamedTuple):
    """Which sites are recorded, and how much of them is kept."""

    sites: str
    keep: Keep
    top: int
    item: int
    limit: int
    vectors: bool = False


class Observer:
    """Add the attention of one model's modules to a recording."""

    def __init__(self, model: nn.Module, recording: Recording, options: ObserveOptions) -> None:
        self.sites, self.recording, self.options = Sites(model), recording, options
        self.item, self.bytes_left, self.saw_other_sites = options.item, options.limit, False
        self.offsets = KeyOffsets()
        self.called: set[int] = set()  # modules by identity
        self.known: set[str] = set()  # sites that were recorded, or of which a note says why not

    def find_site(self, part: str | None = None) -> Site | None:
        """Return the site that is computing, or a `part` of it; None if it is not to be recorded."""
        site = self.sites.find_current()
        if site is None:
            return None
        if part is not None:
            module = site.module.get_submodule(part)
            site = Site(self.sites.names[id(module)], module)
        return site if self.wants(site.name) else None

    def wants(self, name: str) -> bool:
        """Return whether a site is to be recorded."""
        wanted = fnmatchcase(name, self.options.sites)
        self.saw_other_sites |= not wanted
        return wanted

    def find_called_sites(self) -> list[Site]:
        """Return the modules that were called and are to be recorded."""
        modules = [module for module in self.sites.model.modules() if id(module) in self.called]
        called = [Site(self.sites.names[id(module)], module) for module in modules]
        return [site for site in called if fnmatchcase(site.name, self.options.sites)]

    def on_attention(self, weights: Weights | Tensor, call: AttentionCall | None = None) -> None:
        """Record attention that was just computed."""
        site = self.find_site()
        if site is None:
            return
        with torch.no_grad():
            if isinstance(weights, Tensor):
                self.add(site.name, build_tensor_call(weights, self.item, call))
            else:
                self.add(
                    site.name, build_handle_call(weights, count_head_axes(site.module, weights.shape[:-2]), self.item)
                )

    def add(self, name: str, call: ObservedCall, first: Tensor | None = None) -> None:
        """Keep as much of a call as is asked for and fits; `first` is its first key."""
        self.known.add(name)
        if 0 in call.shape:
            self.recording.notes.append(f"{name}: not kept, because it has {call.shape} heads, queries and keys")
            return
        offset = self.offsets.resolve_offset(name, call.shape[2], first)
        attention, note = self._keep(call)
        if attention is not None:
            self.bytes_left -= attention.bytes
            name = self.recording.add(name, attention, offset)
        if note:
            self.recording.notes.append(f"{name}: {note}")

    def note_missed(self, name: str, reason: str) -> None:
        """Add a note that a site attended and was not recorded."""
        self.known.add(name)
        self.recording.notes.append(f"{name}: not seen: {reason}")

    def _keep(self, call: ObservedCall) -> tuple[AttentionMap | None, str | None]:
        """Return as much as is wanted and fits, and a note if that is less than was wanted."""
        keep, top, left = self.options.keep, self.options.top, self.bytes_left
        room = f"{call.dense_bytes:,} bytes of weights, {max(0, left):,} of {self.options.limit:,} left"
        if keep == "weights" and call.dense_bytes <= left:
            return self._add_origin(call.to_dense(), call), None
        sketch = call.count_sketch_bytes(top)
        if keep != "statistics" and isinstance(call, SoftmaxCall) and call.factors_bytes + sketch <= left:
            return call.to_factored(top), f"kept as factors and statistics ({room})" if keep == "weights" else None
        if sketch <= left:
            return call.to_sketch(top), None if keep == "statistics" else f"kept as statistics ({room})"
        return None, f"not kept ({room})"

    def _add_origin(self, attention: DenseMap, call: ObservedCall) -> DenseMap:
        """Return the attention with what it was computed from, if that is wanted, known and fits."""
        origin = call.build_origin() if self.options.vectors else None
        if origin is None or attention.bytes + origin.bytes > self.bytes_left:
            return attention
        return DenseMap(attention.weights, origin)
