"""One process or several: who am I, what do we all know, and who writes."""

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
from regard.training.peers import leave_together, sharing_failures
from regard.training.rendezvous import fresh_store
from regard.training.settings import Parallel, Training
from regard.training.task import Part

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Runtime:
    """This process among its equals. With one process every method is the obvious local thing."""

    part: Part
    device: torch.device
    parallel: Parallel

    @property
    def several(self) -> bool:
        return self.part.world > 1

    @property
    def sharded(self) -> bool:
        return self.several and self.parallel == "fsdp"

    @property
    def leads(self) -> bool:
        return self.part.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over the processes, in double precision."""
        if not self.several:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(numbers)
        return [float(number) for number in numbers.tolist()]

    def merged(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Sums by name over the processes, which need not all have the same names."""
        if not self.several:
            return dict(sums)
        everyone: list[dict[str, float]] = [{} for _ in range(self.part.world)]
        distributed.all_gather_object(everyone, dict(sums))
        names = sorted({name for one in everyone for name in one})
        return {name: sum(one.get(name, 0.0) for one in everyone) for name in names}

    def led(self, work: Callable[[], Result]) -> Result:
        """The first process works; its result, or its error, reaches all, so that nobody waits in vain."""
        if not self.several:
            return work()
        outcome: list[Any] = [None, None]
        if self.leads:
            try:
                outcome = [work(), None]
            except RegardError as error:
                outcome = [None, error]
        distributed.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            outcome[1].relayed = not self.leads
            raise outcome[1]
        result: Result = outcome[0]
        return result

    def wrap(self, objective: nn.Module) -> nn.Module:
        """The module whose gradients are averaged over the processes."""
        if not self.several:
            return objective
        if self.parallel == "ddp":
            return DistributedDataParallel(objective)
        # Here and not above: the import takes most of a second.
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (self.part.world,))
        fully_shard(objective, mesh=mesh)
        return objective

    @contextmanager
    def gradients(self, wrapped: nn.Module, *, last: bool) -> Iterator[None]:
        """Gradients travel with the last batch of a step only."""
        if self.sharded:
            wrapped.set_requires_gradient_sync(last)  # type: ignore[operator]  # added by fully_shard
        waits = isinstance(wrapped, DistributedDataParallel) and not last
        with wrapped.no_sync() if waits else nullcontext():  # type: ignore[operator]
            yield

    def place(self, batch: Any) -> Any:
        """The tensors of a batch on this process's device."""
        if self.device.type == "cpu":
            return batch
        if hasattr(batch, "to"):
            return batch.to(self.device)
        if isinstance(batch, dict):
            return {name: self.place(value) for name, value in batch.items()}
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*map(self.place, batch))
        return type(batch)(map(self.place, batch)) if isinstance(batch, list | tuple) else batch


@contextmanager
def joined(settings: Training) -> Iterator[Runtime]:
    """The processes that torchrun or `launch` started find each other; alone, nothing happens."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    device = chosen(settings.device)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if world == 1:
        yield Runtime(Part(), device, settings.parallel)
        return
    if settings.parallel == "none":
        fix = "use ddp, or fsdp to shard the model"
        raise wrong("training.parallel", f"none with {world} processes", "ddp or fsdp", fix)
    rank = int(os.environ["RANK"])
    backend = "nccl" if device.type == "cuda" else "gloo"
    enter_group(backend, fresh_store(rank, world), rank, world)
    try:
        with sharing_failures(_get_default_store(), rank):
            yield Runtime(Part(rank, world), device, settings.parallel)
            leave_together(_get_default_store(), world)
    finally:
        distributed.destroy_process_group()


def enter_group(backend: str, store: Store | None, rank: int, world: int) -> None:
    """Joins a process group, which then lasts as long as the process; the others notice the end of that.

    The last to let go of a group takes it apart and waits for its threads. If that is DDP's reducer, it holds Python's
    lock meanwhile, and a thread that has a tensor to give back waits for the lock: neither ever ends (torch 2.13). So
    there is one reference that nobody gives back.
    """
    distributed.init_process_group(backend, store=store, rank=rank, world_size=world)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(distributed.group.WORLD))


def chosen(name: str) -> torch.device:
    """The device of this process: with several on one machine each has its own."""
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


def restarted() -> bool:
    """Whether this process replaces one that died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
