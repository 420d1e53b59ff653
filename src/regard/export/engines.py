"""Engines: the programs that translate with the weights of a run.

`torch` multiplies prepacked matrices, `ct2` is CTranslate2, `onnx` is ONNX Runtime with our own search. `auto` tries
those that have the model on a few texts, and takes the fastest of those whose hypotheses are those of torch. What an
engine needs, and the choice, are kept in the run folder by the digest of the weights.
"""

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from regard.datasets.bounds import parse_json
from regard.errors import RegardError, import_package
from regard.export.converter import check_supported
from regard.export.ctranslate2 import ROUNDING, CTranslate2Translator
from regard.export.exported import OnnxTranslator
from regard.export.folder import export
from regard.export.graphs import silence_exporter
from regard.models.kernels.prepacked import Precision, is_on_cpu, prepack, unsupported_error
from regard.tasks.data import Vocabulary
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.prediction import find_weights
from regard.tasks.translation import TranslationResult, TranslationSearchOptions, Translator
from regard.training.run_folder import collect_versions
from regard.training.storage import compute_sha256, lock_file, wrap_storage_errors, write_file

Engine = Literal["auto", "torch", "ct2", "onnx"]
FOLDER = "engines"  # in the run folder
DIGEST_LENGTH = 16  # letters of a digest that tell weights apart
TRIED_TEXTS, LONGEST_TRIED, REPETITIONS = 24, 20, 3


class EngineChoice(NamedTuple):
    """A translator by an engine, the name of the engine, and why `auto` took it (nothing if it was named)."""

    translator: Translator
    name: str
    reason: str = ""


class EngineTrial(NamedTuple):
    """What an engine made of the tried texts, and the seconds that it took."""

    results: list[TranslationResult]
    seconds: float


class EngineFiles:
    """The files of engines in a run folder, for one set of weights."""

    def __init__(self, run: Path, weights: Path | None) -> None:
        self.folder = run / FOLDER / compute_sha256(find_weights(run, weights))[:DIGEST_LENGTH]

    def convert_once(self, translator: Translator, form: Literal["ct2", "onnx"], suffix: str = "") -> Path:
        """Return the exported folder of a format. Of several processes one makes it, and the others wait."""
        folder = self.folder / (form + suffix)
        if folder.is_dir():
            return folder
        with wrap_storage_errors("engine", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with lock_file(self.folder / ".lock"):
                if not folder.is_dir():
                    export(translator, folder, form)
        return folder

    def read_choice(self, precision: Precision) -> dict[str, Any]:
        """Return the choice that was made before with these versions of all programs; nothing if there is none."""
        try:
            found = parse_json((self.folder / f"{precision}.json").read_bytes())
            return found if found["versions"] == collect_versions() and found["engine"] in OPENERS else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def write_choice(self, precision: Precision, engine: str, reason: str) -> None:
        """Keep a choice. A folder that cannot be written to is no error: the choice is made again."""
        record = {"engine": engine, "reason": reason, "versions": collect_versions()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self.folder / f"{precision}.json", json.dumps(record, indent=1).encode())
        except OSError:
            pass


def open_engine(
    translator: Translator, run: Path, engine: Engine, precision: Precision = "float32", weights: Path | None = None
) -> EngineChoice:
    """Return the translator of a run by an engine. Its model in torch can no longer be trained or exported."""
    files = EngineFiles(run, weights)
    if engine != "auto":
        return EngineChoice(OPENERS[engine](translator, files, precision), engine)
    known = files.read_choice(precision)
    if known:
        try:
            return EngineChoice(
                OPENERS[known["engine"]](translator, files, precision), known["engine"], known["reason"]
            )
        except RegardError:
            pass  # its files are gone, or damaged: choose again
    return choose_engine(translator, files, precision)


def choose_engine(translator: Translator, files: EngineFiles, precision: Precision) -> EngineChoice:
    """Return the fastest engine that finds the hypotheses of torch on a few texts.

    With fewer bits no engine finds exactly those; the fastest that has the precision is taken.
    """
    texts = draw_texts(translator.vocabularies.source)
    rivals, refusals = open_rivals(translator, files, precision)
    has_precision = True
    try:
        by_torch = open_torch(translator, files, precision)
    except RegardError:
        if not rivals:
            raise
        by_torch, has_precision = open_torch(translator, files, "float32"), False  # only to compare with
    first = try_engine(by_torch, texts)
    best = EngineChoice(by_torch, "torch", "; ".join(refusals))
    least = first.seconds if has_precision else math.inf
    for name, rival in rivals.items():
        trial = try_engine(rival, texts)
        if precision == "float32" and not agree(first.results, trial.results):
            best = best._replace(reason=f"{name} finds other hypotheses")
        elif trial.seconds < least:
            ratio = first.seconds / trial.seconds
            best, least = (
                EngineChoice(rival, name, f"{ratio:.1f} times as fast as torch on {len(texts)} texts"),
                trial.seconds,
            )
        elif best.name == "torch":
            best = best._replace(reason=f"{name} takes {trial.seconds / first.seconds:.1f} times as long")
    files.write_choice(precision, best.name, best.reason)
    return best


def open_rivals(
    translator: Translator, files: EngineFiles, precision: Precision
) -> tuple[dict[str, Translator], list[str]]:
    """Return the engines beside torch that have this model, and why others do not.

    ONNX Runtime is tried only if CTranslate2 does not have the model: for those that both have, CTranslate2 is faster.
    """
    refusals: list[str] = []
    for name in ("ct2", "onnx"):
        try:
            return {name: OPENERS[name](translator, files, precision)}, refusals
        except RegardError as error:
            refusals.append(f"{name}: {str(error).partition(';')[0]}")
    return {}, refusals


def draw_texts(vocabulary: Vocabulary) -> list[str]:
    """Return texts of random tokens, the same at every call."""
    generator, first = random.Random(0), len(SPECIAL_TOKENS.never) + 1
    lengths = [generator.randint(1, LONGEST_TRIED) for _ in range(TRIED_TEXTS)]
    return [vocabulary.decode([generator.randrange(first, len(vocabulary)) for _ in range(size)]) for size in lengths]


def try_engine(translator: Translator, texts: list[str]) -> EngineTrial:
    """Translate some texts, the first time to warm up, and return the least seconds."""
    search, seconds = TranslationSearchOptions(), []
    results = translator.translate(texts, search)
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        translator.translate(texts, search)
        seconds.append(time.perf_counter() - start)
    return EngineTrial(results, min(seconds))


def agree(wanted: list[TranslationResult], found: list[TranslationResult]) -> bool:
    """Return whether the best hypotheses are the same, or as good to rounding."""
    for one, other in zip(wanted, found, strict=True):
        if bool(one.best) != bool(other.best):
            return False
        if one.best and one.first.ids != other.first.ids and abs(one.first.score - other.first.score) > ROUNDING:
            return False
    return True


def open_torch(translator: Translator, files: EngineFiles, precision: Precision) -> Translator:
    """Return the translator with prepacked matrices."""
    if is_on_cpu(translator.model):
        prepack(translator.model, precision)
    elif precision != "float32":
        raise unsupported_error(precision, "a model that is not on the CPU")
    return translator


def open_ctranslate2(translator: Translator, files: EngineFiles, precision: Precision) -> Translator:
    """Return the translator whose search CTranslate2 does; torch searches again what it cannot find."""
    check_supported(translator.config.model)
    return CTranslate2Translator(translator, files.convert_once(translator, "ct2"), precision)


def open_onnx(translator: Translator, files: EngineFiles, precision: Precision) -> Translator:
    """Return the translator whose model ONNX Runtime computes."""
    if precision == "bfloat16":
        raise unsupported_error(precision, "no such kernels in ONNX Runtime on a CPU")
    folder = files.convert_once(translator, "onnx")
    return OnnxTranslator(folder, quantize_graphs(folder) if precision == "int8" else ".onnx")


def quantize_graphs(folder: Path) -> str:
    """Write the graphs with weights of 8 bits beside the others; return the ending of their names."""
    ending, onnx = ".int8.onnx", import_package("onnx", "export")
    quantization = import_package("onnxruntime.quantization", "export", package="onnx")
    for name in ("encoder", "step"):
        path = folder / f"{name}{ending}"
        if not path.is_file():
            graph, temporary = onnx.load(folder / f"{name}.onnx"), folder / f".{name}{ending}"
            separate_weights(graph.graph)
            with silence_exporter():
                kinds = ["MatMul", "Gemm"]  # embeddings are looked up, not multiplied
                signed = quantization.QuantType.QInt8
                quantization.quantize_dynamic(graph, temporary, kinds, per_channel=True, weight_type=signed)
            temporary.replace(path)
    return ending


def separate_weights(graph: Any) -> None:
    """Give every product a matrix of its own, without a shape on record: quantization transposes matrices in place."""
    del graph.value_info[:]
    matrices = {one.name: one for one in graph.initializer}
    for node in graph.node:
        if node.op_type in ("Gemm", "MatMul") and node.input[1] in matrices:
            own = graph.initializer.add()
            own.CopyFrom(matrices[node.input[1]])
            own.name = node.input[1] = f"{node.input[1]} of {node.name}"


OPENERS: Mapping[str, Callable[[Translator, EngineFiles, Precision], Translator]] = {
    "torch": open_torch,
    "ct2": open_ctranslate2,
    "onnx": open_onnx,
}
