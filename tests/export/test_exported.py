"""Exported folders translate as the run does, with regard and without it."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from regard.errors import InputError, RegardError
from regard.export import export, exported, open_exported
from regard.models import ModelConfig, build_model
from regard.models.config import AttentionConfig, RecurrentConfig, TransformerConfig
from regard.tasks.data import Vocabularies
from regard.tasks.data.pieces import train_pieces
from regard.tasks.data.vocabulary import END, TokenVocabulary, Vocabulary, VocabularyConfig
from regard.tasks.translation import TranslationConfig, TranslationSearchOptions, Translator

sys.path.insert(0, str(Path(__file__).parent))

from test_ctranslate2 import TEXTS as SENTENCES
from test_ctranslate2 import train_translator

pytestmark = pytest.mark.usefixtures("as_installed")  # shape checks cannot be traced
WORDS = TokenVocabulary([f"w{number}" for number in range(13)], "blank")
TEXTS = ["w1 w2 w3", "", "w7", "w12 w0 w0 w5 w4"]
CONFIGS = {
    "bahdanau": ModelConfig(
        "recurrent", "bahdanau", size=8, recurrent=RecurrentConfig(hidden=6), attention=AttentionConfig(hidden=5)
    ),
    "transformer": ModelConfig(
        size=12, longest=64, transformer=TransformerConfig(layers=1, decoder_layers=2, heads=3, hidden=10)
    ),
}


def build(config: ModelConfig, vocabulary: Vocabulary = WORDS) -> Translator:
    torch.manual_seed(5)
    model = build_model(config, source=len(vocabulary), target=len(vocabulary)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        model.decoder.output.bias[END] += 1.0
        model.decoder.output.bias[:3] -= 12.0
    return Translator(TranslationConfig(model=config), Vocabularies(vocabulary, vocabulary), model)


@pytest.mark.parametrize("name", CONFIGS)
def test_onnx_gives_hypotheses_scores_and_weights_of_the_run(name: str, tmp_path: Path) -> None:
    made = build(CONFIGS[name])
    export(made, tmp_path / "model", "onnx")
    exported = open_exported(tmp_path / "model")
    for search in (TranslationSearchOptions(1), TranslationSearchOptions(3, 3)):
        found, wanted = (one.translate(TEXTS, search, attention=True) for one in (exported, made))
        assert [[best.tokens for best in one.best] for one in found] == [[b.tokens for b in one.best] for one in wanted]
        for one, other in zip(found, wanted, strict=True):
            for best, right in zip(one.best, other.best, strict=True):
                assert best.score == pytest.approx(right.score, abs=1e-4)
                torch.testing.assert_close(best.weights, right.weights, atol=1e-4, rtol=1e-3)


def test_ctranslate2_translates_as_the_run_does(tmp_path: Path) -> None:
    """A model that has learned something; and one that says the same word until it is cut off, searched greedily."""
    models = (
        (train_translator(), SENTENCES, ((1, None), (3, "full"), (3, None))),
        (build(CONFIGS["transformer"]), TEXTS, ((1, None),)),
    )
    for number, (made, texts, searches) in enumerate(models):
        export(made, tmp_path / f"{number}", "ct2")
        exported = open_exported(tmp_path / f"{number}")
        for beam, stop in searches:
            search = TranslationSearchOptions(beam, stop=stop)
            found, wanted = (one.translate(texts, search) for one in (exported, made))
            for one, other in zip(found, wanted, strict=True):
                assert [best.tokens for best in one.best] == [best.tokens for best in other.best], (number, beam, stop)
    with pytest.raises(InputError, match="alignments: got an exported folder of CTranslate2, expected a run folder"):
        exported.translate(TEXTS, search, attention=True)


def test_the_command_takes_an_exported_folder(regard: Callable[..., Any], tmp_path: Path) -> None:
    made = build(CONFIGS["bahdanau"])
    export(made, tmp_path / "model", "onnx")
    Path("in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    Path("same.txt").write_text(Path("in.txt").read_text())
    done = regard("translate", "model", "--input", "in.txt", "--output", "out.txt")
    assert (done.code, done.output, done.errors) == (0, "", "")
    wanted = [one.best[0].text if one.best else "" for one in made.translate(TEXTS, TranslationSearchOptions())]
    assert Path("out.txt").read_text().split("\n") == [*wanted, ""]
    assert regard("translate", "model", "in.txt", "in.txt").output.split("\n") == [*wanted, *wanted, ""]
    assert regard("evaluate", "model", "in.txt", "same.txt", "--json").output.startswith('{"in": {"sentences": ')
    for words, sentence in (
        (("translate", "model", "none.txt"), "input: got no file none.txt, expected a text file; fix: check the path"),
        (("translate", "model", "in.txt", "--output", "in.txt"), "output: got in.txt, which is the input, expected an"),
        (("translate", "model", "in.txt", "--output", "no/x"), "output: got no/x, expected a folder that exists; fix:"),
        (
            ("translate", "model", "in.txt", "--weights", "w"),
            "--weights: got w, expected none: model has its own; fix:",
        ),
    ):
        assert regard(*words).errors.startswith(f"regard: {sentence}")
    (tmp_path / "model" / "step.onnx").write_bytes(b"damaged")
    assert "step.onnx, which onnxruntime cannot read" in regard("translate", "model", "in.txt").errors
    (tmp_path / "model" / "regard.json").unlink()
    sentence = "model: got model without a whole regard.json, expected a folder that regard export wrote; fix: export"
    assert regard("translate", "model", "in.txt").errors.startswith(f"regard: {sentence}")


def test_the_lines_of_the_document_translate_without_regard(tmp_path: Path) -> None:
    """With pieces, as translators of text have them; regard cannot be imported there."""
    texts = ["forty-two", "forty", "two hundred", "seventy-two", "a hundred and forty"] * 3
    vocabulary = train_pieces(texts, VocabularyConfig(kind="bpe", size=None))
    made = build(CONFIGS["transformer"], vocabulary)
    with torch.no_grad():
        made.model.decoder.output.bias[END] -= 1.0
    export(made, tmp_path / "model", "onnx")
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code.strip().splitlines()) <= 18
    blocked = f"import sys; sys.modules['regard'] = None\n{code}"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stderr == ""
    (wanted,) = made.translate(["forty-two"], TranslationSearchOptions(beam=1))
    assert done.stdout.startswith(wanted.best[0].text)  # which may be cut off earlier
    assert len(wanted.best[0].tokens) > 1


@pytest.mark.parametrize("form", ["onnx", "ct2"])
def test_a_damaged_folder_is_one_sentence(form: Literal["onnx", "ct2"], tmp_path: Path) -> None:
    export(train_translator() if form == "ct2" else build(CONFIGS["bahdanau"]), tmp_path / "model", form)
    for path in sorted(path for path in (tmp_path / "model").rglob("*") if path.is_file()):
        content = path.read_bytes()
        for damaged in (content[:60], b"[1]", b"{}", b"\xff" * 99):
            path.write_bytes(damaged)
            said = ""
            try:
                open_exported(tmp_path / "model").translate(["w1 w2"], TranslationSearchOptions(2))
            except RegardError as error:
                said = str(error)
            assert not said or (", expected " in said and "\n" not in said), (path.name, said)
        path.write_bytes(content)


@pytest.mark.parametrize("form", ["onnx", "ct2"])
def test_a_hostile_folder_is_one_sentence_and_does_not_wait(form: Literal["onnx", "ct2"], tmp_path: Path) -> None:
    """A pipe in the place of any file would be opened by the engine, and waited for."""
    model = tmp_path / "model"
    export(train_translator() if form == "ct2" else build(CONFIGS["bahdanau"]), model, form)
    for path in sorted(path for path in model.rglob("*") if path.is_file()):
        content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(RegardError, match=r"^[^\n]+: got .*, expected .*; fix: [^\n]+$"):
            open_exported(model)
        path.unlink()
        path.write_bytes(content)
    for longest in (0, -5, 2**20 + 1, 1e300, "9" * 4000, math.inf, [1], None):
        (model / "regard.json").write_text(json.dumps({"longest": longest}))
        with pytest.raises(RegardError, match=r"^model: got .* without a whole regard.json, expected a folder that"):
            open_exported(model)


def test_a_folder_of_too_many_files_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(build(CONFIGS["bahdanau"]), tmp_path / "model", "onnx")
    monkeypatch.setattr(exported, "get_bound", lambda name, quantity: 2)
    with pytest.raises(RegardError, match=r"^model: got .* with more than 2 files, expected a folder that regard"):
        open_exported(tmp_path / "model")


def test_a_graph_reads_no_file_outside_its_folder(tmp_path: Path) -> None:
    """Large tensors of a graph may be in other files: onnxruntime must not follow a name that leads out."""
    export(build(CONFIGS["bahdanau"]), tmp_path / "model", "onnx")
    onnx = pytest.importorskip("onnx")
    graph = onnx.load(tmp_path / "model" / "encoder.onnx")
    large = max(graph.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    (tmp_path / "secret").write_bytes(large.raw_data)
    large.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "../secret"), ("offset", "0"), ("length", str(len(large.raw_data)))):
        entry = large.external_data.add()
        entry.key, entry.value = key, value
    large.ClearField("raw_data")
    (tmp_path / "model" / "encoder.onnx").write_bytes(graph.SerializeToString())
    with pytest.raises(RegardError, match=r"encoder.onnx, which onnxruntime cannot read"):
        open_exported(tmp_path / "model")
