"""A graph is tried before it is given away: on another batch and other lengths than it was made with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import InputError, missing_package, wrong
from regard.export.states import SOURCE, build_state_exporter
from regard.models import EncoderDecoder
from regard.tasks.data import BEGIN, END

LENGTHS = (4, 1, 2, 3, 4)
STEPS = 7  # beyond the source, where a local gaze sees nothing
NEAR = 1e-3  # of float32, through a whole model


def verify_graphs(model: EncoderDecoder[Any], folder: Path) -> None:
    """Raises where the graphs of a folder do not compute what the model does."""
    runtime = _import_onnxruntime()
    sessions = [runtime.InferenceSession(str(folder / name)) for name in ("encoder.onnx", "step.onnx")]
    lengths = torch.tensor(LENGTHS)
    source = torch.full((len(LENGTHS), max(LENGTHS)), END)
    token, parts = torch.full_like(lengths, BEGIN), build_state_exporter(model.decoder)
    with torch.no_grad():
        encoded = model.encode(source, lengths)
        carried, state = parts.begin(encoded), model.decoder.begin(encoded)
        tensors = _run(sessions[0], {"source": source, "lengths": lengths}) | {"lengths": lengths}
        for part in (*carried.source, *carried.state):
            _compare(
                part.name, *(_zero_padding(tensor, part.axes, lengths) for tensor in (tensors[part.name], part.tensor))
            )
        for _ in range(STEPS):
            step = model.decoder.step(token, state)
            found = _run(sessions[1], tensors | {"token": token})
            _compare("logits", found["logits"], step.logits)
            tensors |= {name.removeprefix("next."): part for name, part in found.items()}
            state, token = step.state, step.logits.argmax(1)


def _zero_padding(tensor: Tensor, axes: Mapping[int, str], lengths: Tensor) -> Tensor:
    """The tensor with zeros behind the end of each source, where anything may stand."""
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


def _import_onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise missing_package("onnxruntime", "export") from None
    return onnxruntime
