"""The same bits and the same weights however a model is run: compiled, in half precision, in other threads, shared."""

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import observe
from regard.compute.watchers import WATCHERS
from tests.inspect.observe.checking import close, list_patched, observe_unchanged
from tests.inspect.observe.test_attention_modules import TOKENS, build
from tests.inspect.observe.test_transformers import LLAMA, build_llama, compute_eager_weights

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

pytestmark = pytest.mark.filterwarnings("ignore")  # of the compiler and of transformers, about themselves
SDPA, WRITTEN = "scaled_dot_product_attention", "softmax"


class TwoWayModule(nn.Module):
    """Attention by the fused function, or written out; its result is a tuple, as in many models."""

    def __init__(self, way: str, dropout: float = 0.0) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.way, self.dropout = nn.Linear(4, 4), nn.Linear(4, 4), way, dropout
        self.num_heads = 1

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        query, key = (project(x)[:, None] for project in (self.q_proj, self.k_proj))
        dropout = self.dropout if self.training else 0.0
        if self.way == SDPA:
            return F.scaled_dot_product_attention(query, key, x[:, None], dropout_p=dropout)[:, 0], None
        weights = F.softmax(query @ key.mT * 0.5, dim=-1)
        return (F.dropout(weights, dropout, self.training) @ x[:, None])[:, 0], None

    def weights(self, x: Tensor) -> Tensor:
        return (self.q_proj(x) @ self.k_proj(x).mT * 0.5).float().softmax(-1)


WAYS = pytest.mark.parametrize("way", [SDPA, WRITTEN])
X = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(2))


@WAYS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_numbers(way: str, dtype: torch.dtype) -> None:
    model, x = TwoWayModule(way).to(dtype), X.to(dtype)
    seen = observe_unchanged(model, lambda: model(x)[0])["TwoWayModule"].dense()
    assert seen.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(seen[0].float(), model.weights(x)[0], rtol=0, atol=0.02 if dtype.itemsize == 2 else 1e-6)


@WAYS
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_with_and_without_gradients(way: str, mode: Callable[[], Any]) -> None:
    model = TwoWayModule(way)
    with mode():
        close(observe_unchanged(model, lambda: model(X)[0])["TwoWayModule"].dense()[0], model.weights(X)[0])


@WAYS
def test_training_with_dropout_is_seen_before_it_and_draws_the_same_numbers(way: str) -> None:
    model = TwoWayModule(way, dropout=0.5).train()

    def gradients() -> list[Tensor]:
        return list(torch.autograd.grad(model(X)[0].square().sum(), list(model.parameters())))

    close(observe_unchanged(model, gradients)["TwoWayModule"].dense()[0], model.weights(X)[0])


COMPILED = """
import torch
from tests.inspect.observe.test_circumstances import SDPA, WRITTEN, X, TwoWayModule
from regard import observe
torch.set_grad_enabled(False)
for way in (SDPA, WRITTEN):
    model = TwoWayModule(way).eval()
    plain, compiled = model(X)[0], torch.compile(model, backend="aot_eager", fullgraph=True)
    for _ in range(2):  # compiled while it is observed, then as it was compiled, then observed again
        with observe(compiled) as recording:
            assert torch.equal(compiled(X)[0], plain)
        assert not recording and [note.split(": ")[0] for note in recording.notes] == ["OptimizedModule"]
        assert torch.equal(compiled(X)[0], plain)
"""


def test_a_model_is_compiled_in_one_graph_and_gives_the_same_bits_while_it_is_observed() -> None:
    # In a process of its own: the compiler cannot trace the checks of shapes that the tests put around our functions.
    root = Path(__file__).parents[3]
    command = [sys.executable, "-W", "ignore", "-c", COMPILED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr


@WAYS
def test_other_threads_record_nothing_and_the_note_says_so(way: str) -> None:
    model, results = nn.Sequential(TwoWayModule(way)), []

    def work(part: Tensor) -> None:
        results.append(model(part)[0])

    with observe(model) as recording:
        threads = [threading.Thread(target=work, args=(part,)) for part in X.split(1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 2
    why = "nothing was seen: no attention was computed in this thread outside of compiled graphs"
    assert (list(recording), recording.notes) == ([], [why])


@WAYS
def test_threads_that_observe_for_themselves_see_their_own(way: str) -> None:
    model, seen = TwoWayModule(way), {}

    def work(number: int) -> None:
        for _ in range(20):
            with observe(model, item=number) as recording:
                model(X)
            seen[number] = recording

    before = list_patched()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list_patched() == before
    for number, recording in seen.items():
        assert (list(recording), recording.notes) == (["TwoWayModule"], [])
        close(recording["TwoWayModule"].dense()[0], model.weights(X)[number])


@WAYS
def test_observing_inside_of_observing_sees_each_its_own(way: str) -> None:
    model, before = nn.Sequential(TwoWayModule(way)), list_patched()
    with observe(model) as outer:
        model(X)
        with observe(model[0], item=1) as inner:
            model(X)
        model(X)
    assert (list(inner), list(outer)) == (["TwoWayModule"], ["0", "0#2", "0#3"])
    close(inner["TwoWayModule"].dense()[0], model[0].weights(X)[1])
    close(outer["0#2"].dense()[0], model[0].weights(X)[0])
    assert list_patched() == before


def stop(_: object) -> None:
    raise RuntimeError("stop")


@WAYS
def test_an_exception_leaves_everything_as_it_was(way: str) -> None:
    model, before = TwoWayModule(way), list_patched()
    with pytest.raises(RuntimeError, match=r"^stop$"), observe(model) as recording:
        stop(model(X))
    assert list(recording) == ["TwoWayModule"]
    assert list_patched() == before
    assert "softmax" not in vars(torch.Tensor)
    assert WATCHERS.get() == ()
    with pytest.raises(RuntimeError), observe(model):
        model(X[..., :3])
    assert list_patched() == before
    close(observe_unchanged(model, lambda: model(X)[0])["TwoWayModule"].dense()[0], model.weights(X)[0])


def test_layers_that_share_their_weights_are_numbered_and_stay_apart() -> None:
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 19}
    config = transformers.AlbertConfig(vocab_size=37, embedding_size=8, max_position_embeddings=32, **sizes)
    model = transformers.AlbertModel(config).eval()
    expected = compute_eager_weights(model, {"input_ids": TOKENS})
    recording = observe_unchanged(model, lambda: model(input_ids=TOKENS))
    name = "encoder.albert_layer_groups.0.albert_layers.0.attention"
    assert list(recording) == [name, f"{name}#2", f"{name}#3"]
    for seen, table in zip(recording.values(), expected, strict=True):
        close(seen.dense(), table[0])
    stacked = recording.stack_calls()
    assert list(stacked) == list(recording)  # other layers have other keys: their rows are no one matrix
    assert stacked.notes == [f"{name}: its 3 calls stay apart: the positions of their keys are not known"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["llama", "Bloom"])
def test_models_in_half_precision(name: str, dtype: torch.dtype) -> None:
    model = (build_llama().eval() if name == "llama" else build(name)).to(dtype)
    expected = compute_eager_weights(model, {"input_ids": TOKENS}) if name == "llama" else None
    if expected is None:
        with torch.no_grad():
            expected = list(model(input_ids=TOKENS, output_attentions=True).attentions)
    with torch.inference_mode():
        recording = observe_unchanged(model, lambda: model(input_ids=TOKENS))
    for seen, table in zip(recording.values(), expected, strict=True):
        torch.testing.assert_close(seen.dense(), table[0].float(), rtol=0, atol=0.01)


def test_a_compiled_model_of_transformers_is_seen_when_it_is_not_compiled() -> None:
    model = transformers.LlamaModel(transformers.LlamaConfig(**LLAMA)).eval()
    expected = compute_eager_weights(model, {"input_ids": TOKENS})
    model.layers[0].compile(backend="aot_eager")
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        recording = observe_unchanged(model, lambda: model(input_ids=TOKENS))
    for seen, table in zip(recording.values(), expected, strict=True):
        close(seen.dense(), table[0])


def test_one_plus_infinity_in_a_mask_is_in_its_row_alone() -> None:
    class MaskedModule(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    model, mask = MaskedModule(), torch.zeros(5, 5)
    mask[1, 3] = float("inf")
    output = model(X[:, None], mask)
    for keep in ("weights", "tiles", "statistics"):
        with observe(model, keep=keep, top=5) as recording:
            model(X[:, None], mask)
        weights = recording["MaskedModule"].top(5).weights[0]
        assert weights[1].isnan().any() == output[0, 0, 1].isnan().any()
        close(weights[[0, 2, 3, 4]], (X[0] @ X[0].mT * 0.5).softmax(-1).topk(5).values[[0, 2, 3, 4]])
