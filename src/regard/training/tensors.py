"""Models and optimizers as flat dictionaries of tensors, in safetensors files: nothing that can run code."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from regard.errors import InputError, wrong


def collect_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's tensors that a checkpoint needs, tied ones under their first name only."""
    persistent = model.state_dict().keys()
    tensors = (*model.named_parameters(), *model.named_buffers())
    return {name: tensor.detach() for name, tensor in tensors if name in persistent}


def to_safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a safetensors file."""
    return to_bytes({name: copy_if_shared(tensor) for name, tensor in tensors.items()})


def copy_if_shared(tensor: Tensor) -> Tensor:
    """Return the tensor in memory of its own: safetensors refuses shared storage."""
    whole = tensor.detach().cpu().contiguous()
    alone = whole.untyped_storage().nbytes() == whole.numel() * whole.element_size()
    return whole if alone else whole.clone()


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, in memory of their own.

    The library maps the file: whoever changes it later would change the tensors, and one that is cut ends the process.
    """
    try:
        return {name: tensor.clone() for name, tensor in load_file(path).items()}
    except FileNotFoundError:
        raise wrong("weights", f"{path}, which is not there", "a .safetensors file", "check the path") from None
    except SafetensorError as error:
        raise unreadable_error(path, error) from None


def check_shapes(model: nn.Module, path: Path) -> None:
    """Raise unless a file has the weights of this model; only its header is read."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            found = {name: torch.empty(file.get_slice(name).get_shape(), device="meta") for name in names}
    except (SafetensorError, OSError) as error:
        raise unreadable_error(path, str(error)[:200]) from None
    check_match(collect_tensors(model), found, path)


def unreadable_error(path: Path, reason: object) -> InputError:
    """Return the error of a file that is not a whole safetensors file."""
    fix = "use a file that regard wrote, or restore it from a copy"
    return wrong("weights", f"{path} ({reason})", "a whole safetensors file", fix)


def check_match(expected: Mapping[str, Tensor], found: Mapping[str, Tensor], origin: Path) -> None:
    """Raise unless two sets of tensors have the same names and shapes."""
    problem = find_mismatch(expected, found)
    if problem:
        fix = "use the config.toml of the run that wrote them"
        raise wrong("weights", f"{origin} with {problem}", "the weights of this model", fix)


def restore_weights(model: nn.Module, tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Give the model its weights, or says in one sentence why they are not its own."""
    expected = collect_tensors(model)
    check_match(expected, tensors, origin)
    # Tied names are one tensor: filling the first fills all.
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(tensors[name])


def find_mismatch(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str | None:
    """Return the first thing that two sets of tensors do not have in common, in words."""
    for name in expected:
        if name not in found:
            return f"no {name}"
        if found[name].shape != expected[name].shape:
            return f"{name} of shape {tuple(found[name].shape)} instead of {tuple(expected[name].shape)}"
    return next((f"an unknown {name}" for name in found if name not in expected), None)


def collect_optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the moments and counts of the optimizer, named `parameter/moment`."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Restore what `collect_optimizer_tensors` returned."""
    parameters = dict(model.named_parameters())
    for name, tensor in tensors.items():
        parameter, _, key = name.rpartition("/")
        owner = parameters[parameter]
        optimizer.state[owner][key] = tensor.to(owner.device)


def gather_tensor(tensor: Tensor) -> Tensor:
    """Return all of a tensor of which this process may hold a part. All processes must ask together."""
    full: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full


def get_local_shard(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that this process holds, sharing its memory."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part
