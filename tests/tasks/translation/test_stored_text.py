"""Training on text in the cache: the same vocabulary, token ids, notes, batches and weights as on text in memory."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.tasks import import_task, read_config
from regard.tasks.data import text_corpus
from regard.tasks.data.text_corpus import StoredCorpus
from regard.tasks.data.vocabulary import TokenVocabulary
from regard.tasks.translation import text as translation_text
from regard.tasks.translation.text import collect_vocabulary_pairs
from regard.training import DataShare, Finished, Stepped, train

SMALL = {
    "vocabulary.kind": "word",
    "model.size": "8",
    "recurrent.hidden": "8",
    "attention.hidden": "8",
    "learning.budget": "64",
    "learning.limit": "11",
    "measure.most": "2",
    "stop.steps": "7",
    "every.evaluate": "100",
    "every.log": "1",
    "every.save": "100",
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Text with sentences that are too long, and some with the sign that stands for a blank."""
    monkeypatch.setattr(text_corpus, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("regard.tasks.data.prepared_folder.SETTLED", 0.0)
    lines = [f"{'a b c d '[: number % 9]} {number}\t{number} {'x y z'[: number % 6]}\n" for number in range(10, 97)]
    odd = [text for word in "pqr" for text in (f"{word}▁{word}\t▁{word}\n", f"{30 * (word + ' ')}\t{word} lang\n")]
    path = tmp_path / "t.tsv"
    path.write_text("".join([*lines, *odd]))
    return path


def build(table: Path, folder: str = "run", **values: str) -> Any:
    definition = import_task("translation")
    chosen = SMALL | values | {"training.folder": str(table.parent / folder)}
    return definition.build_task(definition.configure("luong", [str(table)], chosen))


def describe(task: Any) -> list[Any]:
    encoded, pair = task.get_encoded(0), task.dataset.train[3]
    batches = [[tensor.tolist() for tensor in batch] for batch in task.epoch(3, DataShare(1, 2))]
    vocabularies = [vocabulary.to_bytes() for vocabulary in task.vocabulary]
    rows = [[row.tolist() for row in rows] for rows in (encoded.sources, encoded.targets)]
    return [vocabularies, rows, encoded.lengths.tolist(), task.notes, batches, pair, task.dataset.fingerprint]


@pytest.mark.parametrize("kind", ["word", "bpe", "joint bpe"])
def test_ids_notes_and_batches_are_those_of_text_in_memory(
    kind: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"vocabulary.kind": kind.split()[-1], "vocabulary.joint": str("joint" in kind).lower()}
    wanted = describe(build(table, **values))
    assert any("left out" in note for note in wanted[3])
    assert any("which stands for a blank" in note for note in wanted[3])
    monkeypatch.setattr(text_corpus, "LARGE", 0)
    task = build(table, **values)
    assert isinstance(task.dataset, StoredCorpus)
    assert describe(task) == wanted
    for name in ("build_vocabularies", "encode_pairs"):  # the second time nothing is learned or encoded
        monkeypatch.setattr(f"regard.tasks.translation.{name}", None, raising=False)
    monkeypatch.setattr("regard.tasks.translation.encoded_pairs.write_pairs", None)
    assert describe(build(table, **values)) == wanted


def test_another_vocabulary_has_its_own_ids(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_corpus, "LARGE", 0)
    tasks = [build(table, **{"vocabulary.kind": kind}) for kind in ("word", "character")]
    found = [[row.tolist() for row in task.get_encoded(0).sources] for task in tasks]
    assert found[0] != found[1]
    pair = tasks[1].dataset.train[0]
    assert found[1][0][:-1] == tasks[1].vocabulary.source.encode(pair.source)
    known = tasks[0].vocabulary.source
    assert known.to_bytes() != TokenVocabulary(known.known, "word", lowercase=True).to_bytes()


def run(task: Any, resume: Path | None = None, stop: int = 100) -> tuple[list[float], Any]:
    losses: list[float] = []
    events = train(task, task.config, resume=resume, stop=lambda: len(losses) >= stop)
    for event in events:
        if isinstance(event, Stepped):
            losses.append(event.loss)
        if isinstance(event, Finished):
            return losses, event.reason
    raise AssertionError("it did not end")


@pytest.mark.parametrize("lost", [False, True], ids=["", "the cache is gone"])
def test_a_run_on_stored_text_is_resumed_exactly(table: Path, monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    wanted, _ = run(build(table, "memory"))
    monkeypatch.setattr(text_corpus, "LARGE", 0)
    first, reason = run(build(table, "stored"), stop=3)
    assert reason == "interrupted"
    if lost:
        shutil.rmtree(table.parent / "cache" / "text")
    folder = table.parent / "stored"
    second, reason = run(import_task("translation").build_task(read_config(folder), folder), folder)
    assert (first + second, reason) == (wanted, "steps")
    weights = [(table.parent / name / "weights.safetensors") for name in ("memory", "stored")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_vocabulary_is_learned_from_a_bounded_sample(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = build(table).dataset
    assert collect_vocabulary_pairs(data, "") == list(data.train)
    monkeypatch.setattr(translation_text, "SAMPLE", 10)
    some = collect_vocabulary_pairs(data, "")
    assert 5 < len(some) <= 10
    assert some == list(data.train)[:: -(-len(data.train) // 10)]
