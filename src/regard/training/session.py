"""A run while it lives: the parts, how they are built or restored, and how they are saved."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.numerics import native
from regard.training.checkpoint import (
    begin,
    choose_checkpoint,
    path_of,
    prune,
    read_state,
    read_tensors,
    seal,
    sweep,
)
from regard.training.folder import Journal, create, publish, recorded_versions, reopen
from regard.training.lock import Lock
from regard.training.memory import build_within_memory
from regard.training.progress import DivergedError, Progress, Taken, reseed
from regard.training.runtime import Runtime
from regard.training.settings import Optimizer, RunConfig, Training
from regard.training.storage import StorageError, storing, write
from regard.training.task import Task
from regard.training.tensors import distinct, optimizer_tensors, pack, restore, restore_optimizer


class Objective(nn.Module):
    """Model and loss as one module, so that a task may call any method of its model.

    The wrappers that average gradients look only at the forward of what they wrap.
    """

    def __init__(self, task: Task[Any], model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, batch: Any) -> tuple[Tensor, int | Tensor]:
        loss = self.task.loss(self.model, batch)
        return loss.total, loss.count


@dataclass(frozen=True, slots=True)
class Session:
    """What the loop works with. Only the first process has a journal."""

    task: Task[Any]
    settings: Training
    runtime: Runtime
    run: Path
    model: nn.Module
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    journal: Journal | None


@dataclass(slots=True)
class Standing:
    """What to save should an error end the run now."""

    progress: Progress
    taken: Taken | None = None  # a step of which logging, evaluating and saving are still to come
    metrics_bytes: int = 0  # of the metrics before those of that step
    buffers: Mapping[str, Tensor] = field(default_factory=dict)  # as the last whole step left them
    due: bool = False  # whether a checkpoint would be written here if nothing went wrong
    saved: bool = True


def prepared(
    task: Task[Any], config: RunConfig, runtime: Runtime, resume: Path | None, lock: Lock
) -> tuple[Session, Standing, list[str]]:
    """A session at its beginning, or where the last checkpoint of `resume` left it, and what to note."""
    settings = config.training
    run = resume or settings.folder
    # Compiled kernels are there from the first step or never: they differ from torch's in the last bits, and a run
    # that began without them could not be resumed with the same ones.
    native.library()
    notes = runtime.led(lambda: opened(run, lock)) if resume else []
    reseed(settings.seed, -1, 0)
    model = build_within_memory(task.model, config).to(runtime.device)
    if resume is None:
        # After the model: one that cannot be built must not leave a folder that can neither be resumed nor used again.
        runtime.led(lambda: create(run, config, task, lock))
    last, damage = runtime.led(lambda: choose_checkpoint(run))
    state = read_state(last) if last else {}
    standing = standing_of(state)
    if last and not runtime.sharded:
        restore(model, read_tensors(last, "weights"), last)
    wrapped = runtime.wrap(Objective(task, model))
    optimizer = adamw(model, settings.optimizer)
    if last:
        restore_moments(runtime, model, optimizer, last)
    # After the weights: settings that do not fit them must not take the place of those that do.
    changes = runtime.led(lambda: reopen(run, config, standing.progress.step) if resume else [])
    runtime.led(lambda: tidy(run, settings, task))
    journal = Journal(run, standing.metrics_bytes) if runtime.leads else None
    session = Session(task, settings, runtime, run, model, wrapped, optimizer, journal)
    return session, standing, [*notes, *damage, *changes]


def opened(run: Path, lock: Lock) -> list[str]:
    """Takes the lock of a run folder, after a look whether it is one."""
    recorded_versions(run)
    return lock.take(run)


def standing_of(state: Mapping[str, Any]) -> Standing:
    """Where a checkpoint left the run; the beginning where there is none."""
    if not state:
        return Standing(Progress())
    taken = Taken(**(state["taken"] | {"stop": False})) if state.get("taken") else None
    return Standing(Progress.from_json(state["progress"]), taken, state["metrics_bytes"] or 0)


def tidy(run: Path, settings: Training, task: Task[Any]) -> None:
    """What follows the writing of a checkpoint: done again at the start, should the process have died before."""
    with storing("checkpoints", run):
        sweep(run)
        prune(run, settings.keep, task.goal)
        publish(run, task.goal)


def adamw(model: nn.Module, settings: Optimizer) -> torch.optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019), with decay for matrices only."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim > 1]
    others = [parameter for parameter in trained if parameter.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=True,
    )


def restore_moments(runtime: Runtime, model: nn.Module, optimizer: torch.optim.Optimizer, last: Path) -> None:
    """The optimizer's state, and with sharded models the weights too: each process reads only its part."""
    if not runtime.sharded:
        restore_optimizer(optimizer, model, read_tensors(last, "optimizer"))
        return
    from regard.training.sharding import blank_moments, load_shards

    blank_moments(optimizer, model)
    for what, tensors in (("weights", distinct(model)), ("optimizer", optimizer_tensors(optimizer, model))):
        load_shards(tensors, last / what if (last / what).is_dir() else last)


def save(session: Session, progress: Progress, *, due: bool) -> Path:
    """Writes a checkpoint, prunes older ones and publishes the best weights."""
    run, runtime, final = session.run, session.runtime, path_of(session.run, progress.step)
    if runtime.led(lambda: is_complete(final)):
        return final  # resumed and interrupted again before any step
    state = {
        "progress": progress.as_json(),
        "metrics_bytes": session.journal.length() if session.journal else None,
        "due": due,
    }
    if runtime.sharded:
        temporary = runtime.led(lambda: started_saving(run, progress.step))
        fill_shards(session, temporary)
        return runtime.led(lambda: finished_saving(session, temporary, state))
    return runtime.led(lambda: save_plain(session, progress.step, state))


def is_complete(path: Path) -> bool:
    """Whether a checkpoint is there and nothing of its step was left to do."""
    return path.exists() and read_state(path).get("taken") is None


def rescue(session: Session, standing: Standing, error: Exception) -> Path | None:
    """Saves the steps that an error would lose, as far as this process can without the others.

    Not after a loss that is no number, because the weights may be on their way there, nor where the disk is at fault.
    """
    if standing.saved or not session.runtime.leads or session.runtime.sharded:
        return None
    if isinstance(error, DivergedError | StorageError):
        return None
    state = {
        "progress": standing.progress.as_json(),
        "metrics_bytes": standing.metrics_bytes,
        "due": standing.due,
        "taken": asdict(standing.taken) if standing.taken else None,
    }
    try:
        if is_complete(path_of(session.run, standing.progress.step)):
            return None  # the error came after the save, while the others were told
        if session.journal:
            session.journal.length()
        with torch.no_grad():
            for name, tensor in session.model.named_buffers():
                if name in standing.buffers:
                    tensor.copy_(standing.buffers[name])
        return save_plain(session, standing.progress.step, state)
    except (RegardError, OSError, RuntimeError):
        return None  # the error that ended the run is the one to be told


def copy_buffers(session: Session) -> dict[str, Tensor]:
    """What a step that fails halfway would spoil: unlike weights, buffers change in the forward pass."""
    lasting = session.model.state_dict(keep_vars=True).keys()
    return {name: tensor.detach().clone() for name, tensor in session.model.named_buffers() if name in lasting}


def save_plain(session: Session, step: int, state: Mapping[str, Any]) -> Path:
    """A checkpoint by one process. If it fails, no trace of it is left."""
    temporary = started_saving(session.run, step)
    try:
        with storing(f"checkpoint {step}", session.run):
            write(temporary / "weights.safetensors", pack(distinct(session.model)))
            moments = optimizer_tensors(session.optimizer, session.model)
            write(temporary / "optimizer.safetensors", pack(moments))
        return finished_saving(session, temporary, state)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def started_saving(run: Path, step: int) -> Path:
    with storing(f"checkpoint {step}", run):
        return begin(run, step)


def fill_shards(session: Session, temporary: Path) -> None:
    from regard.training.sharding import save_shards

    with storing("checkpoint", session.run):
        save_shards(distinct(session.model), temporary / "weights")
        save_shards(optimizer_tensors(session.optimizer, session.model), temporary / "optimizer")


def finished_saving(session: Session, temporary: Path, state: Mapping[str, Any]) -> Path:
    with storing("checkpoint", session.run):
        final = seal(temporary, state)
    tidy(session.run, session.settings, session.task)
    return final
