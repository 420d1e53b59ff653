"""Communication of the processes of a training; with one process everything is local."""

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as distributed
from torch import nn
from torch._C._distributed_c10d import Store
from torch.distributed.distributed_c10d import _get_default_store
from torch.nn.parallel import DistributedDataParallel

from regard.errors import RegardError, wrong
from regard.training.failures import leave_together, share_failures
from regard.training.rendezvous import open_fresh_store
from regard.training.settings import Parallel, Training
from regard.training.task import DataShare

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Runtime:
    """This process and its communication with the others. With one process every method works locally."""

    share: DataShare
    device: torch.device
    parallel: Parallel

    @property
    def is_distributed(self) -> bool:
        return self.share.world > 1

    @property
    def is_sharded(self) -> bool:
        return self.is_distributed and self.parallel == "fsdp"

    @property
    def is_main_process(self) -> bool:
        return self.share.rank == 0

    def sum_values(self, values: Sequence[float]) -> list[float]:
        """Sum over the processes, in double precision."""
        if not self.is_distributed:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(numbers)
        return [float(number) for number in numbers.tolist()]

    def merge_sums(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Sum by name over the processes, which need not all have the same names."""
        if not self.is_distributed:
            return dict(sums)
        everyone: list[dict[str, float]] = [{} for _ in range(self.share.world)]
        distributed.all_gather_object(everyone, dict(sums))
        names = sorted({name for one in everyone for name in one})
        return {name: sum(one.get(name, 0.0) for one in everyone) for name in names}

    def run_on_main_process(self, work: Callable[[], Result]) -> Result:
        """Call `work` in the first process and return its result, or raise its error, in all of them."""
        if not self.is_distributed:
            return work()
        outcome: list[Any] = [None, None]
        if self.is_main_process:
            try:
                outcome = [work(), None]
            except RegardError as error:
                outcome = [None, error]
        distributed.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            outcome[1].relayed = not self.is_main_process
            raise outcome[1]
        result: Result = outcome[0]
        return result

    def wrap(self, objective: nn.Module) -> nn.Module:
        """Return the module whose gradients are averaged over the processes."""
        if not self.is_distributed:
            return objective
        if self.parallel == "ddp":
            return DistributedDataParallel(objective)
        # Here and not above: the import takes most of a second.
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (self.share.world,))
        fully_shard(objective, mesh=mesh)
        return objective

    @contextmanager
    def sync_gradients(self, wrapped: nn.Module, *, last: bool) -> Iterator[None]:
        """Average the gradients over the processes only in the last batch of a step."""
        if self.is_sharded:
            wrapped.set_requires_gradient_sync(last)  # type: ignore[operator]  # added by fully_shard
        waits = isinstance(wrapped, DistributedDataParallel) and not last
        with wrapped.no_sync() if waits else nullcontext():  # type: ignore[operator]
            yield

    def move_to_device(self, batch: Any) -> Any:
        """Return the tensors of a batch on this process's device."""
        if self.device.type == "cpu":
            return batch
        if hasattr(batch, "to"):
            return batch.to(self.device)
        if isinstance(batch, dict):
            return {name: self.move_to_device(value) for name, value in batch.items()}
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*map(self.move_to_device, batch))
        return type(batch)(map(self.move_to_device, batch)) if isinstance(batch, list | tuple) else batch


@contextmanager
def join_processes(settings: Training) -> Iterator[Runtime]:
    """Connect the processes that torchrun or `launch` started; a single process needs nothing."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    device = choose_device(settings.device)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if world == 1:
        yield Runtime(DataShare(), device, settings.parallel)
        return
    if settings.parallel == "none":
        fix = "use ddp, or fsdp to shard the model"
        raise wrong("training.parallel", f"none with {world} processes", "ddp or fsdp", fix)
    rank = int(os.environ["RANK"])
    backend = "nccl" if device.type == "cuda" else "gloo"
    enter_group(backend, open_fresh_store(rank, world), rank, world)
    try:
        with share_failures(_get_default_store(), rank):
            yield Runtime(DataShare(rank, world), device, settings.parallel)
            leave_together(_get_default_store(), world)
    finally:
        distributed.destroy_process_group()


def enter_group(backend: str, store: Store | None, rank: int, world: int) -> None:
    """Join a process group that lasts as long as the process; the others notice if it ends.

    The last to let go of a group takes it apart and waits for its threads. If that is DDP's reducer, it holds Python's
    lock meanwhile, and a thread that has a tensor to give back waits for the lock: neither ever ends (torch 2.13). So
    there is one reference that nobody gives back.
    """
    distributed.init_process_group(backend, store=store, rank=rank, world_size=world)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(distributed.group.WORLD))


def choose_device(name: str) -> torch.device:
    """Return the device of this process: with several on one machine each has its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise wrong("training.device", name, "a device that torch has here", "use cpu or auto") from None
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


def is_restarted() -> bool:
    """Return whether this process replaces one that died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
