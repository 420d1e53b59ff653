"""ONNX graphs say what the model says: greedy decoding through onnxruntime, on lengths they were not made with."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor

from regard.errors import InputError
from regard.export import export
from regard.export.verification import verify_graphs
from regard.models import Hypothesis, ModelConfig, build_model, greedy_search
from regard.models.config import AttentionConfig, RecurrentConfig, TransformerConfig
from regard.tasks.data import Vocabularies
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.data.vocabulary import TokenVocabulary
from regard.tasks.translation import TranslationConfig, Translator

pytestmark = pytest.mark.usefixtures("as_installed")  # shape checks cannot be traced
WORDS = TokenVocabulary([f"w{number}" for number in range(13)], "blank")
LENGTHS, LIMIT = torch.tensor([6, 1, 4, 3]), 9
CONFIGS = {
    "bahdanau": ModelConfig(
        "recurrent",
        "bahdanau",
        size=8,
        recurrent=RecurrentConfig(hidden=6),
        attention=AttentionConfig(hidden=5, coverage=True),
    ),
    "luong": ModelConfig(
        "recurrent",
        "luong",
        size=8,
        recurrent=RecurrentConfig("lstm", hidden=6, layers=2),
        attention=AttentionConfig("bilinear", scope="local-m", radius=2, feeding=True),
    ),
    "transformer": ModelConfig(size=12, transformer=TransformerConfig(layers=1, decoder_layers=2, heads=3, hidden=10)),
}


def build_translator(config: ModelConfig) -> Translator:
    torch.manual_seed(5)
    model = build_model(config, source=len(WORDS), target=len(WORDS)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return Translator(TranslationConfig(model=config), Vocabularies(WORDS, WORDS), model)


class Graphs:
    """A program that knows the files alone."""

    def __init__(self, folder: Path) -> None:
        self.facts = json.loads((folder / "graphs.json").read_text())
        self.encoder, self.step = (onnxruntime.InferenceSession(str(folder / f"{n}.onnx")) for n in ("encoder", "step"))

    def run(self, session: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        given = {part.name: tensors[part.name].numpy() for part in session.get_inputs()}
        names = [part.name for part in session.get_outputs()]
        return dict(zip(names, map(torch.from_numpy, session.run(names, given)), strict=True))

    def greedy(self, source: Tensor, lengths: Tensor) -> list[tuple[list[int], float]]:
        state = self.run(self.encoder, {"source": source, "lengths": lengths}) | {"lengths": lengths}
        token, said = torch.full_like(lengths, self.facts["begin"]), [([], 0.0) for _ in lengths]
        for step in range(LIMIT + 1):
            found = self.run(self.step, state | {"token": token})
            log_probs = found["logits"].log_softmax(1)
            token = log_probs.index_fill(1, torch.tensor(self.facts["never"]), -torch.inf).argmax(1)
            token = torch.full_like(token, self.facts["end"]) if step == LIMIT else token
            state |= {name: found[later] for name, later in self.facts["changes"].items()}
            for row, number in enumerate(token.tolist()):
                tokens, total = said[row]
                if not tokens or tokens[-1] != self.facts["end"]:
                    said[row] = [*tokens, number], total + float(log_probs[row, number])
        return said


def close(found: Sequence[tuple[list[int], float]], wanted: Sequence[Hypothesis], end: int) -> None:
    assert [tokens for tokens, _ in found] == [[*one.tokens, end] for one in wanted]
    for (_, log_prob), one in zip(found, wanted, strict=True):
        assert log_prob == pytest.approx(one.log_prob, abs=1e-4)


@pytest.mark.parametrize("name", CONFIGS)
def test_greedy_decoding_through_onnxruntime_says_the_same(name: str, tmp_path: Path) -> None:
    torchs = build_translator(CONFIGS[name])
    export(torchs, tmp_path / "graphs", "onnx")
    source = torch.randint(4, len(WORDS), (len(LENGTHS), 6), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        wanted = greedy_search(torchs.model.decoder, torchs.model.encode(source, LENGTHS), SPECIAL_TOKENS, LIMIT)
    found = Graphs(tmp_path / "graphs").greedy(source, LENGTHS)
    close(found, wanted, SPECIAL_TOKENS.end)
    assert len({tuple(tokens) for tokens, _ in found}) > 1
    with torch.no_grad():
        torchs.model.decoder.output.bias[5] += 1.0
    with pytest.raises(InputError, match="logits that differ from the model's, expected a graph that does what the"):
        verify_graphs(torchs.model, tmp_path / "graphs")


def test_a_walk_is_refused(tmp_path: Path) -> None:
    config = ModelConfig("recurrent", "bahdanau", attention=AttentionConfig(normalizer="monotonic"))
    with pytest.raises(InputError) as caught:
        export(build_translator(config), tmp_path / "graphs", "onnx")
    expected = "one without a walk, which is as long as the source"
    assert str(caught.value) == f"normalizer: got Monotonic, expected {expected}; fix: export it as safetensors"
    assert not list(tmp_path.iterdir())
