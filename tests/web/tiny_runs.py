"""Tiny translators in run folders."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.models import ModelConfig, build_model
from regard.models.config import AttentionConfig, RecurrentConfig, TransformerConfig
from regard.tasks import import_task
from regard.tasks.data import END, Vocabularies, save_vocabularies
from regard.tasks.data.vocabulary import TokenVocabulary
from regard.tasks.translation import TranslationConfig
from regard.training.lock import Lock
from regard.training.run_folder import collect_versions, create_run
from regard.training.tensors import collect_tensors, to_safetensors
from regard.training.toml import to_toml
from regard.web.limits import Limits

WORDS = ["▁one", "▁two", "▁three", "▁four", "▁<script>alert(1)</script>", "▁九"]
MODELS = {
    "transformer": ModelConfig(size=12, tied="none", transformer=TransformerConfig(2, 2, heads=3, hidden=10)),
    "bahdanau": ModelConfig(
        "recurrent", "bahdanau", 8, recurrent=RecurrentConfig(hidden=6), attention=AttentionConfig(hidden=5)
    ),
    "plain": ModelConfig("recurrent", "plain", 8, recurrent=RecurrentConfig(hidden=6)),
}
LIMITS = Limits(characters=200, tokens=40, beam=4, body=4000, upload=50_000, kept=400_000, cells=4000)

SMALL = {
    "captioning": {
        "data.scenes": "8",
        "data.held_out": "2",
        "model.size": "8",
        "model.hidden": "8",
        "model.width": "8",
    },
    "speech": {"data.size": "4", "data.held_out": "2", "listener.hidden": "4", "speller.hidden": "8"},
    "reading": {"data.size": "8", "data.held_out": "2", "reader.hidden": "4", "reader.width": "6"},
}


def make_run(folder: Path, model: str) -> Path:
    """Make a run folder of a translator that was never trained, and that ends soon, so that it stays within limits."""
    torch.manual_seed(3)
    config = TranslationConfig()
    config = replace(config, model=MODELS[model])
    words = TokenVocabulary(WORDS, "word")
    built = build_model(config.model, source=len(words), target=len(words))
    with torch.no_grad():
        built.decoder.output.weight.mul_(3.0)
        built.decoder.output.bias[END] += 2.0
    folder.mkdir(parents=True)
    save_vocabularies(Vocabularies(words, TokenVocabulary(WORDS, "word")), folder)
    (folder / "config.toml").write_text(to_toml(config))
    (folder / "versions.json").write_text(json.dumps(collect_versions()))
    (folder / "weights.safetensors").write_bytes(to_safetensors(collect_tensors(built)))
    lines = [{"event": "stepped", "step": step, "epoch": 0, "loss": 3.0 / step, "rate": 0.1} for step in (1, 2, 3)]
    lines.append({"event": "evaluated", "step": 3, "epoch": 0, "metrics": {"bleu": 7.5}, "best": True})
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def make_untrained(folder: Path, task: str, **values: str) -> Path:
    """Make a run folder of generated data whose weights were never trained."""
    torch.manual_seed(1)
    tools = import_task(task)
    config = tools.configure(None, [], SMALL.get(task, {}) | values)
    made = tools.build_task(config)
    lock = Lock()
    create_run(folder, config, made, lock)
    lock.close()
    (folder / "weights.safetensors").write_bytes(to_safetensors(collect_tensors(made.model())))
    return folder


def collect_events(answer: Any) -> list[tuple[str, Any]]:
    """Return the events of a whole answer."""
    parts = [part.split("\n") for part in answer.text.split("\n\n") if part]
    return [(part[0].removeprefix("event: "), json.loads(part[1].removeprefix("data: "))) for part in parts]
