"""Translate with an exported folder, without the run that it came from: by onnxruntime or by CTranslate2."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from regard.datasets.bounds import check_file, get_bound
from regard.datasets.plain_files import read_json
from regard.datasets.text import shorten
from regard.errors import InputError, RegardError, import_package, wrong
from regard.export.ctranslate2 import (
    NEARLY_NONE,
    ROUNDING,
    CTranslate2Translator,
    HypothesisLists,
    is_broken,
    strip_end,
)
from regard.models import EncoderOutput, Hypothesis, ModelConfig
from regard.models.interface import Decoder, DecoderStep, StoredAlignment
from regard.tasks.data import load_vocabularies, special_tokens
from regard.tasks.data.batches import map_by_length, pad_rows
from regard.tasks.translation import TranslationConfig, TranslationResult, TranslationSearchOptions, Translator
from regard.tasks.translation.encoded_pairs import encode_texts
from regard.tasks.translation.translations import compute_max_lengths, decode_result

FACTS = "regard.json"  # what a translator needs beside graphs and vocabularies
REPEAT = "export the run again"
MARKS = {"onnx": "graphs.json", "ct2": "model.bin"}  # the file by which a folder of each format is known


def write_facts(translator: Translator, folder: Path, form: str) -> None:
    """Write the format of an exported folder, and the most tokens that its model has positions for."""
    facts = {"format": form, "longest": translator.config.model.longest}
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


def find_format(folder: Path) -> str | None:
    """Return the format of an exported folder; None if it is something else, such as a run."""
    return next((form for form, mark in MARKS.items() if (folder / mark).is_file()), None)


def open_exported(folder: Path) -> Translator:
    """Return the translator of an exported folder."""
    form = find_format(folder)
    if form is None:
        raise wrong("model", folder, "a folder that regard export wrote", "check the path")
    with report_damage(folder):
        check_folder(folder)
        openers: dict[str, Callable[[Path], Translator]] = {"onnx": OnnxTranslator, "ct2": ExportedCTranslate2}
        return openers[form](folder)


def check_folder(folder: Path) -> None:
    """Raise unless a folder has few files, all plain and of bounded size: the engines would open a pipe and wait."""
    most = get_bound("run folder", "entries")
    paths = list(islice(folder.rglob("*"), most + 1))
    if len(paths) > most:
        raise wrong("model", f"{folder} with more than {most:,} files", "a folder that regard export wrote", REPEAT)
    for path in paths:
        if not path.is_dir():
            check_file("model", path, get_bound("run folder", "weights bytes"))


@contextmanager
def report_damage(folder: Path) -> Iterator[None]:
    """Turn any error of the engine, or about the files that it reads, into one sentence about the folder."""
    try:
        yield
    except RegardError:
        raise
    except Exception as error:  # the engines have no types of their own for it
        got = f"{folder}, which cannot be used ({type(error).__name__}: {shorten(error)})"
        raise wrong("model", got, "a folder that regard export wrote", REPEAT) from None


def read_translator(folder: Path) -> Translator:
    """Return the vocabularies and the longest text of an exported folder, as a translator without a model."""
    try:
        longest = int(read_json(folder / FACTS)["longest"])
        if not 1 <= longest <= get_bound("run folder", "number"):
            raise ValueError("a number of tokens that no model has")
    except (OSError, OverflowError, ValueError, KeyError, TypeError):
        raise wrong("model", f"{folder} without a whole {FACTS}", "a folder that regard export wrote", REPEAT) from None
    config = TranslationConfig(model=ModelConfig(longest=longest))
    return Translator(config, load_vocabularies(folder), cast(Any, None))


class Logits(NamedTuple):
    """In place of an output layer: the vectors of steps are scores of the vocabulary already."""

    weight: None = None
    bias: None = None


class OnnxDecoder(Decoder[dict[str, Tensor]]):
    """The graph of one step, with the state that the graph of the encoder has begun."""

    def __init__(self, session: Any, changes: Mapping[str, str], begun: dict[str, Tensor]) -> None:
        super().__init__()
        self.session, self.changes, self.begun = session, changes, begun
        self.output = cast(Any, Logits())

    def begin(self, encoded: EncoderOutput) -> dict[str, Tensor]:
        return self.begun

    def advance(self, token: Tensor, state: dict[str, Tensor]) -> DecoderStep[dict[str, Tensor]]:
        found = run_graph(self.session, state | {"token": token})
        later = state | {name: found[new] for name, new in self.changes.items()}
        weights = StoredAlignment(found["weights"]) if "weights" in found else None
        return DecoderStep(found["logits"], later, weights)


class OnnxTranslator(Translator):
    """A translator whose model runs in onnxruntime; its search is ours."""

    def __init__(self, folder: Path, ending: str = ".onnx") -> None:
        bare = read_translator(folder)
        super().__init__(bare.config, bare.vocabularies, bare.model)
        runtime = import_package("onnxruntime", "export")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4  # what it would print is in the exception, and becomes our sentence
        self.encoder, self.step = (
            open_graph(runtime, folder / f"{name}{ending}", options) for name in ("encoder", "step")
        )
        self.folder = folder
        self.changes: dict[str, str] = read_json(folder / MARKS["onnx"])["changes"]

    def translate_nonblank(
        self, texts: Sequence[str], search: TranslationSearchOptions, *, attention: bool
    ) -> list[TranslationResult]:
        rows = encode_texts(texts, self.vocabularies.source, search.longest - 1)
        best = map_by_length(rows, search.budget, lambda some: self.search_rows(some, search, attention=attention))
        return [decode_result(row, own, self.vocabularies) for row, own in zip(rows, best, strict=True)]

    def search_rows(
        self, rows: Sequence[list[int]], search: TranslationSearchOptions, *, attention: bool
    ) -> HypothesisLists:
        """Return the best hypotheses of each sentence of a batch."""
        with report_damage(self.folder):
            source, lengths = pad_rows(rows)
            begun = run_graph(self.encoder, {"source": source, "lengths": lengths}) | {"lengths": lengths}
            decoder = OnnxDecoder(self.step, self.changes, begun)
            shape = EncoderOutput(torch.zeros(*source.shape, 1), lengths, torch.zeros(len(rows), 1))
            options = None if search.beam == 1 and not search.coverage else search.beam_options
            return special_tokens.search(
                decoder, shape, compute_max_lengths(lengths, search), options, attention=attention
            )


class ExportedCTranslate2(CTranslate2Translator):
    """CTranslate2 without the model in torch: what only torch could search again stays as CTranslate2 found it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(read_translator(folder), folder)

    def improve(
        self, rows: Sequence[list[int]], best: HypothesisLists, search: TranslationSearchOptions
    ) -> HypothesisLists:
        greedy = self.search_rows(rows, replace(search, beam=1, best=1))
        divisor = search.beam_options.scoring.compute_divisor
        better = []
        for own, (one,) in zip(best, greedy, strict=True):
            score = one.log_prob / divisor(len(one.tokens) + 1)
            gains = bool(own) and score > own[0].score + ROUNDING
            better.append([replace(one, score=score), *own][: search.best] if gains else own)
        return better

    def search_by_torch(
        self, rows: Sequence[list[int]], indices: list[int], search: TranslationSearchOptions
    ) -> dict[int, list[Hypothesis]]:
        """Return what CTranslate2 has completed, ranked by our rule; if that is nothing, what it was about to say."""
        limits = compute_max_lengths(torch.tensor([len(rows[index]) for index in indices]), search).tolist()
        return {
            index: self.search_row(rows[index], limit, search) for index, limit in zip(indices, limits, strict=True)
        }

    def search_row(self, row: list[int], limit: int, search: TranslationSearchOptions) -> list[Hypothesis]:
        """Return the best hypotheses of one sentence, of at most `limit` tokens."""
        options = {"beam_size": search.beam, "num_hypotheses": search.beam, "length_penalty": NEARLY_NONE}
        (result,) = self.engine.translate_batch(
            [[self.names[0][number] for number in row]],
            max_input_length=0,
            max_decoding_length=limit + 1,
            return_scores=True,
            return_end_token=True,
            disable_unk=True,
            **options,
        )
        found = [self.build_hypothesis(result, number, search) for number in range(len(result.hypotheses))]
        whole = [strip_end(one) for one in found if not is_broken(one, limit)] or [cut_off(found[0], limit)]
        return sorted(whole, key=lambda one: -one.score)[: search.best]

    def add_attention(self, row: list[int], hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        raise no_weights_error()


def cut_off(hypothesis: Hypothesis, limit: int) -> Hypothesis:
    """Return the beginning of a hypothesis that did not end, without special tokens."""
    special = (*special_tokens.SPECIAL_TOKENS.never, special_tokens.SPECIAL_TOKENS.end)
    return replace(hypothesis, tokens=tuple(token for token in hypothesis.tokens if token not in special)[:limit])


def no_weights_error() -> InputError:
    """Return the error for attention that an exported folder of CTranslate2 cannot give."""
    got, expected = "an exported folder of CTranslate2", "a run folder, or one exported as onnx"
    return wrong("alignments", got, expected, "leave the alignments out, or name the run")


def open_graph(runtime: Any, path: Path, options: Any) -> Any:
    """Return a session of onnxruntime; raise a sentence if the file is missing or damaged."""
    try:
        return runtime.InferenceSession(str(path), options)
    except Exception as error:  # the package has no type of its own for it
        got = f"{path}, which onnxruntime cannot read ({type(error).__name__})"
        raise wrong("model", got, "a graph that regard export wrote", REPEAT) from None


def run_graph(session: Any, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the outputs of a graph by their names."""
    given = {part.name: tensors[part.name].numpy() for part in session.get_inputs()}
    names = [part.name for part in session.get_outputs()]
    return dict(zip(names, map(torch.from_numpy, session.run(names, given)), strict=True))
