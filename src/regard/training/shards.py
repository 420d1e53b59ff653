"""Sharded tensors on the disk, readable at any world size: torch's distributed checkpoints (DCP).

DCP's own format holds a pickle; its safetensors reader and writer do not.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

MOMENTS = ("exp_avg", "exp_avg_sq")


def save_shards(tensors: dict[str, Tensor], folder: Path) -> None:
    """Write the part of this process. All processes must call this together; if one fails, all do."""
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    try:
        save(tensors, storage_writer=writer)
    except CheckpointException as error:
        causes = [cause for cause, _ in error.failures.values() if isinstance(cause, OSError)]
        raise (causes[0] if causes else OSError(str(error))) from error


def load_shards(tensors: dict[str, Tensor], folder: Path) -> None:
    """Fill `tensors`, sharded or not, from the safetensors files of a folder, sharded or not."""
    load(tensors, storage_reader=HuggingFaceStorageReader(str(folder)))


def gather_shards(folder: Path) -> dict[str, Tensor]:
    """Return whole tensors from sharded files, in one process and without any process group."""
    listed = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    tensors = {
        name: torch.zeros(entry.size, dtype=entry.properties.dtype)
        for name, entry in sorted(listed.items())
        if isinstance(entry, TensorStorageMetadata)
    }
    with ignore_group_warning():
        reader = HuggingFaceStorageReader(str(folder))
        load(tensors, storage_reader=reader, no_dist=True)
    return tensors


@contextmanager
def ignore_group_warning() -> Iterator[None]:
    """Silence torch's warning about loading without a process group, which is wanted here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def allocate_moments(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Give AdamW the state that it has after a step, sharded like its parameters, to be filled."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            moments = {key: torch.zeros_like(parameter) for key in MOMENTS}
            optimizer.state[parameter] = {"step": torch.zeros((), device=parameter.device), **moments}
