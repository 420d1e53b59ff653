"""ONNX: one graph that encodes a source, one that predicts a token. The state between them is passed in and out."""

import importlib.util
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from regard.errors import missing_package, wrong
from regard.export.onnx_encoder import OnnxRecurrentEncoder
from regard.export.verification import verify_graphs
from regard.models import EncoderDecoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.exported_state import ROW, SOURCE, TARGET, StateTensor
from regard.tasks.data import BEGIN, END
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.translation import Translator

OPSET = 20
ROWS, LONGEST, EXAMPLE_STEPS = 3, 7, 5  # of the example that is traced: none is 0 or 1, which graphs take for constants


class EncoderGraph(nn.Module):
    """From a source to the state before the first token."""

    def __init__(self, model: EncoderDecoder[Any]) -> None:
        super().__init__()
        encoder = model.encoder
        self.encoder = OnnxRecurrentEncoder(encoder) if isinstance(encoder, RecurrentEncoder) else encoder
        self.decoder = model.decoder

    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        exported = self.decoder.export_begin(self.encoder(source, lengths))
        return tuple(part.tensor for part in (*exported.source, *exported.state) if part.name != "lengths")


class StepGraph(nn.Module):
    """One step: scores of the next token, the weights, and the state after it."""

    def __init__(self, model: EncoderDecoder[Any], names: list[str]) -> None:
        super().__init__()
        self.decoder, self.names = model.decoder, names

    def forward(self, token: Tensor, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        tensors = dict(zip(self.names, parts, strict=True))
        step = self.decoder.step(token, self.decoder.assemble(tensors))
        weights = () if step.weights is None else (step.weights.dense(),)
        later = self.decoder.export_state(step.state, tensors.get("steps", token) + 1)
        return (step.logits, *weights, *(part.tensor for part in later))


def to_onnx(translator: Translator, folder: Path) -> None:
    """Write `encoder.onnx`, `step.onnx`, and `graphs.json`, which describes their inputs and outputs."""
    check_packages()
    model = translator.model.cpu().eval()
    folder.mkdir()
    lengths = torch.tensor([LONGEST, *range(2, ROWS + 1)])
    inputs = [
        StateTensor("source", torch.full((ROWS, LONGEST), END), {0: ROW, 1: SOURCE}),
        StateTensor("lengths", lengths, {0: ROW}),
    ]
    with torch.no_grad():
        encoded = model.encode(*(part.tensor for part in inputs))
        source, state = model.decoder.export_begin(encoded)
        first = model.decoder.step(torch.full_like(lengths, BEGIN), model.decoder.begin(encoded))
    changes = [part.name for part in state]
    begun = [part.name for part in (*source, *state) if part.name != "lengths"]
    write_graph(EncoderGraph(model), inputs, begun, folder / "encoder.onnx")
    given = [*source, *map(lengthen_state, state)]
    token = StateTensor("token", torch.full_like(lengths, BEGIN), {0: ROW})
    outputs = ["logits", *["weights"] * (first.weights is not None), *(f"next.{name}" for name in changes)]
    write_graph(StepGraph(model, [part.name for part in given]), [token, *given], outputs, folder / "step.onnx")
    write_description([part.name for part in source], changes, outputs, folder)
    verify_graphs(model, folder)


def lengthen_state(part: StateTensor) -> StateTensor:
    """Return a part of a state as it is after some steps: graphs take a length of 0 for a constant."""
    shape = [EXAMPLE_STEPS if part.axes.get(axis) == TARGET else size for axis, size in enumerate(part.tensor.shape)]
    return part._replace(tensor=part.tensor.new_zeros(shape))


def write_graph(module: nn.Module, inputs: Sequence[StateTensor], outputs: Sequence[str], path: Path) -> None:
    """Write one graph for any batch and lengths."""
    shapes = [dict.fromkeys(part.axes, Dim.AUTO) for part in inputs]
    tensors = [part.tensor for part in inputs]
    arguments, dynamic = (
        (first, tuple(rest) if isinstance(module, StepGraph) else rest[0]) for first, *rest in (tensors, shapes)
    )
    with torch.no_grad(), silence_exporter():
        program = torch.export.export(module, arguments, dynamic_shapes=dynamic, strict=False)
        names = [part.name for part in inputs]
        made = torch.onnx.export(
            program, (), input_names=names, output_names=outputs, opset_version=OPSET, verbose=False
        )
    if made is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    check_open(made, inputs)
    made.save(str(path), external_data=False)


def check_open(made: Any, inputs: Sequence[StateTensor]) -> None:
    """Raise if a part of the model has fixed a length that must stay open."""
    shapes = {value.name: value.shape for value in made.model.graph.inputs}
    for part in inputs:
        for axis, name in part.axes.items():
            if part.name in shapes and isinstance(shapes[part.name][axis], int):
                got = f"a model that works for {name} = {shapes[part.name][axis]} alone"
                raise wrong("onnx", got, "one for any batch and length", "export it as safetensors")


@contextmanager
def silence_exporter() -> Iterator[None]:
    """Silence warnings of torch's exporter about its own code, and advice that optimizers of graphs log."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", None)]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def write_description(source: list[str], state: list[str], outputs: list[str], folder: Path) -> None:
    """Write what another program has to know, beside the vocabularies."""
    facts = {
        "encoder": {"inputs": ["source", "lengths"], "outputs": [n for n in (*source, *state) if n != "lengths"]},
        "step": {"inputs": ["token", *source, *state], "outputs": outputs},
        "stays": source,
        "changes": {name: f"next.{name}" for name in state},
        "begin": BEGIN,
        "end": END,
        "never": SPECIAL_TOKENS.never,
    }
    (folder / "graphs.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def check_packages() -> None:
    """Raise if a package for ONNX is missing."""
    for name in ("onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise missing_package(name, "export")
