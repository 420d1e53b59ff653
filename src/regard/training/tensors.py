"""Models and optimizers as flat dictionaries of tensors, in safetensors files: nothing that can run code."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from regard.errors import wrong

ALIASES = "aliases"


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file. Tied tensors are written once; the file's header says which names share one."""
    first: dict[tuple[int, tuple[int, ...], tuple[int, ...]], str] = {}
    kept, aliases = {}, {}
    for name, tensor in tensors.items():
        detached = tensor.detach()
        place = (detached.data_ptr(), tuple(detached.shape), detached.stride())
        owner = first.setdefault(place, name) if detached.numel() else name
        if owner == name:
            # A copy where memory overlaps in any other way: safetensors refuses shared storage.
            whole = detached.untyped_storage().nbytes() == detached.numel() * detached.element_size()
            kept[name] = detached.contiguous() if whole else detached.contiguous().clone()
        else:
            aliases[name] = owner
    return to_bytes({name: tensor.cpu() for name, tensor in kept.items()}, {ALIASES: json.dumps(aliases)})


def unpack(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, tied names included."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
            aliases = json.loads((file.metadata() or {}).get(ALIASES, "{}"))
    except FileNotFoundError:
        raise wrong(
            "weights", f"{path}, which does not exist", "a .safetensors file", "check the path"
        ) from None
    except (SafetensorError, json.JSONDecodeError) as error:
        fix = "use a file that regard wrote, or restore it from a copy"
        raise wrong("weights", f"{path} ({error})", "a whole safetensors file", fix) from None
    return tensors | {name: tensors[owner] for name, owner in aliases.items()}


def restore(model: nn.Module, tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Gives the model its weights, or says in one sentence why they are not its own."""
    expected = model.state_dict()
    problem = next(
        (f"no {name}" for name in expected if name not in tensors),
        next((f"an unknown {name}" for name in tensors if name not in expected), None),
    ) or next(
        (
            f"{name} of shape {tuple(tensors[name].shape)} instead of {tuple(tensor.shape)}"
            for name, tensor in expected.items()
            if tensors[name].shape != tensor.shape
        ),
        None,
    )
    if problem:
        fix = "use the config.toml of the run that wrote them"
        raise wrong("weights", f"{origin} with {problem}", "the weights of this model", fix)
    model.load_state_dict(dict(tensors))


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The moments and counts of the optimizer, named `parameter/moment`."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """The inverse of `optimizer_tensors`."""
    parameters = dict(model.named_parameters())
    for name, tensor in tensors.items():
        parameter, _, key = name.rpartition("/")
        owner = parameters[parameter]
        optimizer.state[owner][key] = tensor.to(owner.device)
