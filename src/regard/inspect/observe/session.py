"""Observe a model: patch the attention functions it calls, record what they compute, put them back."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from regard.algebra.shapes import describe
from regard.compute.watchers import WATCHERS
from regard.errors import wrong, wrong_kind
from regard.inspect.observe.attention_modules import describe_unseen
from regard.inspect.observe.hooks import HOOKS, wrap_cache_update, wrap_module_call
from regard.inspect.observe.observer import KEEPS, Keep, ObserveOptions, Observer
from regard.inspect.observe.patches import CALL, SOFTMAX, UPDATE, Replacer, patch_functions, wrap_with_hook
from regard.inspect.observe.softmax_hook import observe_softmax
from regard.inspect.recording import Recording

REPLACEMENTS: dict[str, Replacer] = {
    **{name: wrap_with_hook(hook) for name, hook in {**HOOKS, SOFTMAX: observe_softmax}.items()},
    CALL: wrap_module_call,
    UPDATE: wrap_cache_update,
}
NOTHING = "no attention was computed in this thread outside of compiled graphs"
COMPILED = 'torch.compile made a graph of it; run it inside torch.compiler.set_stance("force_eager")'


@contextmanager
def observe(
    model: nn.Module,
    *,
    sites: str = "*",
    keep: Keep = "weights",
    top: int = 8,
    item: int = 0,
    limit: int = 2**28,
    vectors: bool = False,
) -> Iterator[Recording]:
    """Record the attention of each module whose path matches `sites`, for one `item` of the batch.

    The output of the model is the same to the last bit, and so is the way it is computed. `keep` says how much is
    kept: all weights, as long as the recording stays within `limit` bytes; factors from which any tile of weights is
    computed; or statistics with the `top` largest weights of each query. What does not fit is kept in the next way, and
    a note says so. Weights are those before dropout. With `vectors`, queries, keys and the lengths of values are kept
    too, as far as they fit: `recording[site].explain(head, query, key)` and the panel then say what made a weight.

    Recorded are this library's own attention, `nn.MultiheadAttention` and modules built on it, whatever calls
    `F.scaled_dot_product_attention`, transformers' models in their default and in eager attention, and the softmax of
    (batch, heads, queries, keys) of any module that is called Attention or projects queries and keys. A module that
    looks like attention and was called without being recorded is named in the notes, and so is one that torch.compile
    made a graph of, unless it runs inside `torch.compiler.set_stance("force_eager")`. Other threads record nothing.

    >>> model = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> with observe(model) as recording:
    ...     _ = model(*[torch.zeros(1, 3, 4)] * 3, need_weights=False)
    >>> recording["MultiheadAttention"].dense()[0, 0]
    tensor([0.3333, 0.3333, 0.3333])
    """
    check_options(model, keep, top, item, limit)
    recording = Recording()
    observer = Observer(model, recording, ObserveOptions(sites, keep, top, item, limit, vectors))
    with patch_functions(model, REPLACEMENTS):
        token = WATCHERS.set((*WATCHERS.get(), observer))
        try:
            yield recording
        finally:
            WATCHERS.reset(token)
    note_unseen(observer, model)


def note_unseen(observer: Observer, model: nn.Module) -> None:
    """Add notes about attention that was computed and not recorded."""
    recording, sites = observer.recording, observer.options.sites
    for name in find_compiled(model):
        if not any(site.startswith(name) for site in recording):
            observer.note_missed(name or type(model).__name__, COMPILED)
    recording.notes += describe_unseen(observer.find_called_sites(), observer.known)
    if not recording and not recording.notes:
        why = f"no site matches '{sites}'" if observer.saw_other_sites else NOTHING
        recording.notes.append(f"nothing was seen: {why}")


def find_compiled(model: nn.Module) -> list[str]:
    """Return the paths of the modules that torch.compile has wrapped or compiled in place."""
    marks = ("_orig_mod", "_compiled_call_impl")
    return [
        name for name, part in model.named_modules() if any(getattr(part, mark, None) is not None for mark in marks)
    ]


def check_options(model: nn.Module, keep: str, top: int, item: int, limit: int) -> None:
    """Raise if an argument of `observe` cannot be meant."""
    if not isinstance(model, nn.Module):
        raise wrong_kind("model", describe(model), "an nn.Module", "give the model itself")
    if keep not in KEEPS:
        raise wrong("keep", repr(keep), f"one of {', '.join(KEEPS)}", "say how much is to be kept")
    for name, number, least in (("top", top, 1), ("item", item, 0), ("limit", limit, 1)):
        if number < least:
            raise wrong(name, number, f"at least {least}", "count from there")
