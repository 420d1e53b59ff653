"""Exported graphs are compared with the model, on another batch and other lengths than they were made with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import InputError, import_package, wrong
from regard.models import EncoderDecoder
from regard.models.exported_state import SOURCE
from regard.tasks.data import BEGIN, END

LENGTHS = (4, 1, 2, 3, 4)
STEPS = 7  # beyond the source, where a local scope has no position
NEAR = 1e-3  # of float32, through a whole model


def verify_graphs(model: EncoderDecoder[Any], folder: Path) -> None:
    """Raise if the graphs of a folder do not compute what the model does."""
    runtime = import_package("onnxruntime", "export")
    sessions = [runtime.InferenceSession(str(folder / name)) for name in ("encoder.onnx", "step.onnx")]
    lengths = torch.tensor(LENGTHS)
    source = torch.full((len(LENGTHS), max(LENGTHS)), END)
    token = torch.full_like(lengths, BEGIN)
    with torch.no_grad():
        encoded = model.encode(source, lengths)
        exported, state = model.decoder.export_begin(encoded), model.decoder.begin(encoded)
        tensors = _run(sessions[0], {"source": source, "lengths": lengths}) | {"lengths": lengths}
        for name, tensor, axes in (*exported.source, *exported.state):
            _compare(name, *(_zero_padding(part, axes, lengths) for part in (tensors[name], tensor)))
        for _ in range(STEPS):
            step = model.decoder.step(token, state)
            found = _run(sessions[1], tensors | {"token": token})
            _compare("logits", found["logits"], step.logits)
            tensors |= {name.removeprefix("next."): part for name, part in found.items()}
            state, token = step.state, step.logits.argmax(1)


def _zero_padding(tensor: Tensor, axes: Mapping[int, str], lengths: Tensor) -> Tensor:
    """Return the tensor with zeros at the padding of the source, where anything may be."""
    along = [axis for axis, name in axes.items() if name == SOURCE]
    if not along:
        return tensor
    shape = [1] * tensor.dim()
    shape[0], shape[along[0]] = len(lengths), -1
    real = torch.arange(tensor.shape[along[0]]) < lengths[:, None]
    return torch.where(real.view(shape), tensor, 0.0)


def _run(session: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    given = {part.name: tensors[part.name].numpy() for part in session.get_inputs()}
    names = [part.name for part in session.get_outputs()]
    try:
        return dict(zip(names, map(torch.from_numpy, session.run(names, given)), strict=True))
    except Exception as error:  # the package has no type of its own for it
        raise _mismatch_error(f"a graph that fails ({type(error).__name__})") from error


def _compare(name: str, found: Tensor, wanted: Tensor) -> None:
    if found.shape != wanted.shape or not torch.allclose(found, wanted, rtol=NEAR, atol=NEAR):
        raise _mismatch_error(f"{name} that differ from the model's")


def _mismatch_error(got: str) -> InputError:
    return wrong("onnx", got, "a graph that does what the model does", "export it as safetensors")
