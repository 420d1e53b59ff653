"""ONNX: one graph that reads a source, one that says a token. What is remembered between them is given in and out."""

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

from regard.errors import missing, wrong
from regard.export.cells import OnnxCells
from regard.export.proof import prove
from regard.export.states import ROW, SAID, SOURCE, Named, carrier
from regard.models import Model
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.tasks.data import BEGIN, END
from regard.tasks.data.marks import MARKS
from regard.tasks.translation import Translator

OPSET = 20
ROWS, LONGEST, SAYS = 3, 7, 5  # of the example that is traced: none is 0 or 1, which graphs take for constants


class Reading(nn.Module):
    """From a source to the state before the first token."""

    def __init__(self, model: Model[Any]) -> None:
        super().__init__()
        encoder = model.encoder
        self.encoder = OnnxCells(encoder) if isinstance(encoder, RecurrentEncoder) else encoder
        self.decoder, self.carrier = model.decoder, carrier(model.decoder)

    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        carried = self.carrier.begin(self.encoder(source, lengths))
        return tuple(part.tensor for part in (*carried.source, *carried.state) if part.name != "lengths")


class Saying(nn.Module):
    """One step: scores of the next token and where it looked, and the state after it."""

    def __init__(self, model: Model[Any], names: list[str]) -> None:
        super().__init__()
        self.decoder, self.carrier, self.names = model.decoder, carrier(model.decoder), names

    def forward(self, token: Tensor, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        tensors = dict(zip(self.names, parts, strict=True))
        step = self.decoder.step(token, self.carrier.together(tensors))
        looked = () if step.weights is None else (step.weights.dense(),)
        later = self.carrier.changed(step.state, tensors.get("steps", token))
        return (step.logits, *looked, *(part.tensor for part in later))


def to_onnx(translator: Translator, folder: Path) -> None:
    """Writes `encoder.onnx`, `step.onnx`, and `graphs.json`, which says what goes in and out."""
    needed()
    model = translator.model.cpu().eval()
    folder.mkdir()
    lengths = torch.tensor([LONGEST, *range(2, ROWS + 1)])
    inputs = [
        Named("source", torch.full((ROWS, LONGEST), END), {0: ROW, 1: SOURCE}),
        Named("lengths", lengths, {0: ROW}),
    ]
    with torch.no_grad():
        encoded = model.encode(*(part.tensor for part in inputs))
        source, state = carrier(model.decoder).begin(encoded)
        looks = model.decoder.step(torch.full_like(lengths, BEGIN), model.decoder.begin(encoded)).weights is not None
    changes = [part.name for part in state]
    begun = [part.name for part in (*source, *state) if part.name != "lengths"]
    write(Reading(model), inputs, begun, folder / "encoder.onnx")
    given = [*source, *map(later, state)]
    token = Named("token", torch.full_like(lengths, BEGIN), {0: ROW})
    outputs = ["logits", *["weights"] * looks, *(f"next.{name}" for name in changes)]
    write(Saying(model, [part.name for part in given]), [token, *given], outputs, folder / "step.onnx")
    describe([part.name for part in source], changes, outputs, folder)
    prove(model, folder)


def later(part: Named) -> Named:
    """A part of a state as it is after some steps: nothing has the length 0, which graphs take for a constant."""
    shape = [SAYS if part.axes.get(axis) == SAID else size for axis, size in enumerate(part.tensor.shape)]
    return part._replace(tensor=part.tensor.new_zeros(shape))


def write(module: nn.Module, inputs: Sequence[Named], outputs: Sequence[str], path: Path) -> None:
    """One graph, with open batch and lengths."""
    shapes = [dict.fromkeys(part.axes, Dim.AUTO) for part in inputs]
    tensors = [part.tensor for part in inputs]
    arguments, dynamic = (
        (first, tuple(rest) if isinstance(module, Saying) else rest[0]) for first, *rest in (tensors, shapes)
    )
    with torch.no_grad(), quiet():
        program = torch.export.export(module, arguments, dynamic_shapes=dynamic, strict=False)
        names = [part.name for part in inputs]
        made = torch.onnx.export(
            program, (), input_names=names, output_names=outputs, opset_version=OPSET, verbose=False
        )
    if made is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    check_open(made, inputs)
    made.save(str(path), external_data=False)


def check_open(made: Any, inputs: Sequence[Named]) -> None:
    """Raises where a part of the model has fixed a length that must stay open."""
    shapes = {value.name: value.shape for value in made.model.graph.inputs}
    for part in inputs:
        for axis, name in part.axes.items():
            if part.name in shapes and isinstance(shapes[part.name][axis], int):
                got = f"a model that works for {name} = {shapes[part.name][axis]} alone"
                raise wrong("onnx", got, "one for any batch and length", "export it as safetensors")


@contextmanager
def quiet() -> Iterator[None]:
    """torch's exporter warns of itself, and its optimizer logs what it leaves as it is."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
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


def describe(source: list[str], state: list[str], outputs: list[str], folder: Path) -> None:
    """What another program has to know, beside the vocabularies."""
    facts = {
        "encoder": {"inputs": ["source", "lengths"], "outputs": [n for n in (*source, *state) if n != "lengths"]},
        "step": {"inputs": ["token", *source, *state], "outputs": outputs},
        "stays": source,
        "changes": {name: f"next.{name}" for name in state},
        "begin": BEGIN,
        "end": END,
        "never": MARKS.never,
    }
    (folder / "graphs.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def needed() -> None:
    """Raises where the packages for ONNX are missing."""
    for name in ("onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise missing(name, "export")
