"""Sites, budgets, threads, exceptions, nesting: whoever looks disturbs nobody."""

import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import InputError, KindError, observe
from regard.compute.watchers import WATCHERS
from regard.inspect.recording import DenseMap, FactoredMap, Sketch
from tests.inspect.observe.checking import close, list_patched, observe_unchanged

B, H, L, E = 2, 2, 5, 12
NOTHING = "nothing was seen: no attention was computed in this thread outside of compiled graphs"


def build_encoder(depth: int = 3) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(E, H, 17, batch_first=True)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def test_sites_are_chosen_by_glob() -> None:
    model, x = build_encoder(), torch.randn(B, L, E)
    recording = observe_unchanged(model, lambda: model(x), sites="layers.[12].*")
    assert list(recording) == ["layers.1.self_attn", "layers.2.self_attn"]
    assert observe_unchanged(model, lambda: model(x), sites="decoder.*").notes == [
        "nothing was seen: no site matches 'decoder.*'"
    ]
    linear = nn.Linear(E, E)
    assert observe_unchanged(linear, lambda: linear(x)).notes == [NOTHING]


def test_the_budget_is_kept_and_what_is_lost_is_said() -> None:
    model, x = build_encoder(4), torch.randn(B, 11, E)
    whole = H * 11 * 11 * 4
    sketch = H * ((11 + 11) * 4 + 11 * 2 * 8)
    factored = sketch + H * 11 * (6 + 6 + 1) * 4
    limit = whole + factored + sketch + 3
    recording = observe_unchanged(model, lambda: model(x), limit=limit, top=2)
    # what fits is kept: all weights, then what is smaller; nothing is kept in silence
    kinds = [type(seen) for seen in recording.values()]
    assert kinds[0] is DenseMap
    assert recording.bytes <= limit
    assert len(recording.notes) == 4 - kinds.count(DenseMap)
    assert recording.notes[-1].endswith(f"of {limit:,} left)")
    few = observe_unchanged(model, lambda: model(x), limit=10)
    assert not few
    assert few.notes[0] == "layers.0.self_attn: not kept (968 bytes of weights, 10 of 10 left)"


@pytest.mark.parametrize(("keep", "kind"), [("weights", DenseMap), ("tiles", FactoredMap), ("statistics", Sketch)])
def test_what_is_asked_for_is_kept(keep: str, kind: type) -> None:
    model, x = build_encoder(1), torch.randn(B, L, E)
    recording = observe_unchanged(model, lambda: model(x), keep=keep)
    assert type(recording["layers.0.self_attn"]) is kind
    assert not recording.notes


def test_a_shared_module_is_numbered_by_its_calls() -> None:
    layer = nn.MultiheadAttention(E, H, batch_first=True)
    model, x = nn.ModuleDict({"a": layer, "b": layer}), torch.randn(B, L, E)
    recording = observe_unchanged(model, lambda: [layer(x, x, x)[0] for _ in range(3)])
    assert list(recording) == ["a", "a#2", "a#3"]


def test_only_the_thread_that_observes_records() -> None:
    model, x = build_encoder(1), torch.randn(B, L, E)
    others: list[Any] = []
    started, done = threading.Event(), threading.Event()

    def call_elsewhere() -> None:
        started.wait(600)
        others.append(model(x))
        with observe(model, item=1) as own:
            model(x)
        others.append(own)
        done.set()

    thread = threading.Thread(target=call_elsewhere)
    thread.start()
    before = list_patched()
    with observe(model) as recording:
        started.set()
        assert done.wait(600)
        assert list_patched() != before  # the other has left, and this one still looks
        model(x)
    thread.join()
    assert list(recording) == list(others[1]) == ["layers.0.self_attn"]
    assert not torch.equal(recording["layers.0.self_attn"].dense(), others[1]["layers.0.self_attn"].dense())
    assert list_patched() == before


def test_an_exception_leaves_everything_as_it_was() -> None:
    class BrokenModule(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            F.scaled_dot_product_attention(x, x, x)
            raise RuntimeError("broken")

    before, model = list_patched(), BrokenModule()
    with pytest.raises(RuntimeError, match=r"^broken$"), observe(model) as recording:
        model(torch.randn(B, L, E))
    assert list(recording) == ["BrokenModule"]
    assert list_patched() == before
    assert WATCHERS.get() == ()


def test_a_bad_call_raises_as_without_observing() -> None:
    class WrongModule(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x[..., 1:], x)

    model, x = WrongModule(), torch.randn(1, 1, L, E)
    with pytest.raises(RuntimeError) as plain:
        model(x)
    with pytest.raises(RuntimeError) as watched, observe(model):
        model(x)
    assert str(plain.value) == str(watched.value)


def test_nesting_works() -> None:
    model, x = build_encoder(2), torch.randn(B, L, E)
    with observe(model) as outer:
        model(x)
        with observe(model.layers[0]) as inner:
            model(x)
    assert list(inner) == ["self_attn"]
    assert [name.split(".")[1] for name in outer] == ["0", "1", "0", "1"]
    close(inner["self_attn"].dense(), outer["layers.0.self_attn#2"].dense())


def test_a_function_that_was_imported_by_name_is_seen() -> None:
    model, x = NamedModule(), torch.randn(B, H, L, E)
    before = scaled_dot_product_attention
    recording = observe_unchanged(model, lambda: model(x))
    close(recording["NamedModule"].dense(), (x @ x.mT * E**-0.5).softmax(-1)[0])
    assert scaled_dot_product_attention is before


from torch.nn.functional import scaled_dot_product_attention  # noqa: E402  # as others do it


class NamedModule(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return scaled_dot_product_attention(x, x, x)


def test_what_others_do_is_not_seen() -> None:
    model, x = build_encoder(1), torch.randn(B, L, E)
    other = nn.MultiheadAttention(E, H, batch_first=True)
    with observe(model) as recording:
        other(x, x, x)
    assert recording.notes == [NOTHING]


def test_a_long_attention_is_seen_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inspect.observe.blocks.LONG", 30)
    monkeypatch.setattr("regard.inspect.observe.blocks.CELLS", 8)
    monkeypatch.setattr("regard.inspect.observe.blocks.BLOCK", 500)

    class LongModule(nn.Module):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(query, key, key, is_causal=True)

    model, query, key = LongModule(), torch.randn(B, H, 37, 3), torch.randn(B, H, 41, 3)
    hidden = torch.full((37, 41), float("-inf")).triu(1)
    expected = (query @ key.mT * 3**-0.5 + hidden).softmax(-1)[0]
    seen = observe_unchanged(model, lambda: model(query, key), keep="tiles", top=3)["LongModule"]
    close(seen.dense(), expected)
    close(seen.entropy(), torch.special.entr(expected).sum(-1))
    close(seen.received_weight(), expected.sum(-2))
    close(seen.top(3).weights, expected.topk(3).values)
    assert isinstance(seen, FactoredMap)
    assert seen.sketch.overview is not None
    assert seen.sketch.overview.step == (5, 6)
    close(seen.sketch.overview.mean, F.avg_pool2d(expected, (5, 6), ceil_mode=True))
    close(seen.sketch.overview.peak, F.max_pool2d(expected, (5, 6), ceil_mode=True))


def test_transforms_of_torch_func_are_left_alone() -> None:
    class PlainModule(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x, x)

    model, x = PlainModule(), torch.randn(B, H, L, E)
    recording = observe_unchanged(model, lambda: torch.func.vmap(model)(x))
    assert recording.notes == ["PlainModule: not seen: inside of a transform of torch.func"]


@pytest.mark.usefixtures("as_installed")
def test_mistakes_are_named() -> None:
    model, x = build_encoder(1), torch.randn(B, L, E)
    with (
        pytest.raises(InputError, match=r"^item: got 2, expected 0 … 1; fix: observe an item that the batch has$"),
        observe(model, item=2),
    ):
        model(x)
    with (
        pytest.raises(InputError, match=r"^keep: got 'all', expected one of weights, tiles, statistics; fix: "),
        observe(model, keep="all"),
    ):  # type: ignore[arg-type]
        pass
    with (
        pytest.raises(InputError, match=r"^top: got 0, expected at least 1; fix: count from there$"),
        observe(model, top=0),
    ):
        pass
    with (
        pytest.raises(KindError, match=r"^model: got the class Linear, expected an nn.Module; fix: give the model"),
        observe(nn.Linear),
    ):  # type: ignore[arg-type]
        pass


@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_a_compiled_model_is_not_silently_empty() -> None:
    model, x = nn.Sequential(BareModule(), BareModule()), torch.randn(B, L, E)
    model[1].compile(backend="eager")
    why = 'not seen: torch.compile made a graph of it; run it inside torch.compiler.set_stance("force_eager")'
    with observe(model) as recording:
        model(x)
    assert (list(recording), recording.notes) == (["0"], [f"1: {why}"])
    whole = torch.compile(BareModule(), backend="eager")
    with observe(whole) as recording:
        whole(x)
    assert (list(recording), recording.notes) == ([], [f"OptimizedModule: {why}"])
    with torch.compiler.set_stance("force_eager"), observe(model) as recording:
        model(x)
    assert (list(recording), recording.notes) == (["0", "1"], [])


class BareModule(nn.Module):
    """The fused function and nothing else."""

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x)
