"""The parts of a running training: how they are built or restored, and how they are saved."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.compute.kernels import native
from regard.errors import RegardError
from regard.training.checkpoint import (
    choose_checkpoint,
    create_temporary,
    get_checkpoint_path,
    prune,
    read_state,
    read_tensors,
    remove_leftovers,
    seal,
)
from regard.training.lock import Lock
from regard.training.memory import build_within_memory
from regard.training.progress import DivergedError, Progress, StepResult, seed_generator
from regard.training.run_folder import MetricsLog, create_run, log_resumption, publish_best_weights, read_versions
from regard.training.runtime import Runtime
from regard.training.settings import Optimizer, RunConfig, Training
from regard.training.storage import StorageError, wrap_storage_errors, write_file
from regard.training.task import Task
from regard.training.tensors import (
    collect_optimizer_tensors,
    collect_tensors,
    restore_optimizer,
    restore_weights,
    to_safetensors,
)


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
    """The parts of a running training. Only the first process has a metrics log."""

    task: Task[Any]
    settings: Training
    runtime: Runtime
    run: Path
    model: nn.Module
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    metrics_log: MetricsLog | None


@dataclass(slots=True)
class RunState:
    """What to save if an error ends the run now."""

    progress: Progress
    pending_step: StepResult | None = None  # a step of which logging, evaluating and saving are still to come
    metrics_bytes: int = 0  # of the metrics before those of that step
    buffers: Mapping[str, Tensor] = field(default_factory=dict)  # as the last whole step left them
    due: bool = False  # whether a checkpoint would be written here if nothing went wrong
    saved: bool = True


def prepare_session(
    task: Task[Any], config: RunConfig, runtime: Runtime, resume: Path | None, lock: Lock
) -> tuple[Session, RunState, list[str]]:
    """Return a session at its beginning, or where the last checkpoint of `resume` left it, and what to note."""
    settings = config.training
    run = resume or settings.folder
    # Compiled kernels are there from the first step or never: they differ from torch's in the last bits, and a run
    # that began without them could not be resumed with the same ones.
    native.load_library()
    notes = runtime.run_on_main_process(lambda: lock_run(run, lock)) if resume else []
    seed_generator(settings.seed, -1, 0)
    model = build_within_memory(task.model).to(runtime.device)
    if resume is None:
        # After the model: one that cannot be built must not leave a folder that can neither be resumed nor used again.
        runtime.run_on_main_process(lambda: create_run(run, config, task, lock))
    last, damage = runtime.run_on_main_process(lambda: choose_checkpoint(run))
    state = read_state(last) if last else {}
    standing = restore_run_state(state)
    if last and not runtime.is_sharded:
        restore_weights(model, read_tensors(last, "weights"), last)
    wrapped = runtime.wrap(Objective(task, model))
    optimizer = build_optimizer(model, settings.optimizer)
    if last:
        restore_moments(runtime, model, optimizer, last)
    # After the weights: settings that do not fit them must not take the place of those that do.
    changes = runtime.run_on_main_process(lambda: log_resumption(run, config, standing.progress.step) if resume else [])
    runtime.run_on_main_process(lambda: tidy_checkpoints(run, settings, task))
    journal = MetricsLog(run, standing.metrics_bytes) if runtime.is_main_process else None
    session = Session(task, settings, runtime, run, model, wrapped, optimizer, journal)
    return session, standing, [*notes, *damage, *changes]


def lock_run(run: Path, lock: Lock) -> list[str]:
    """Check that a folder is a run and take its lock."""
    read_versions(run)
    return lock.acquire(run)


def restore_run_state(state: Mapping[str, Any]) -> RunState:
    """Return the state of the run at a checkpoint; that of a new run if there is none."""
    if not state:
        return RunState(Progress())
    taken = StepResult(**(state["taken"] | {"stop": False, "expired": False})) if state.get("taken") else None
    return RunState(Progress.from_json(state["progress"]), taken, state["metrics_bytes"] or 0)


def tidy_checkpoints(run: Path, settings: Training, task: Task[Any]) -> None:
    """Prune checkpoints and publish the best weights: after each save, and at the start if a process died before."""
    with wrap_storage_errors("checkpoints", run):
        remove_leftovers(run)
        prune(run, settings.keep, task.goal)
        publish_best_weights(run, task.goal)


def build_optimizer(model: nn.Module, settings: Optimizer) -> torch.optim.Optimizer:
    """Return AdamW (Loshchilov & Hutter 2019) with weight decay for matrices only."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim > 1]
    others = [parameter for parameter in trained if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": settings.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=True,
    )


def restore_moments(runtime: Runtime, model: nn.Module, optimizer: torch.optim.Optimizer, last: Path) -> None:
    """Restore the optimizer, and for sharded models the weights too: each process reads only its part."""
    if not runtime.is_sharded:
        restore_optimizer(optimizer, model, read_tensors(last, "optimizer"))
        return
    from regard.training.shards import allocate_moments, load_shards

    allocate_moments(optimizer, model)
    for what, tensors in (
        ("weights", collect_tensors(model)),
        ("optimizer", collect_optimizer_tensors(optimizer, model)),
    ):
        load_shards(tensors, last / what if (last / what).is_dir() else last)


def save_checkpoint(session: Session, progress: Progress, *, due: bool) -> Path:
    """Write a checkpoint, prune older ones and publish the best weights."""
    run, runtime, final = session.run, session.runtime, get_checkpoint_path(session.run, progress.step)
    if runtime.run_on_main_process(lambda: is_complete(final)):
        return final  # resumed and interrupted again before any step
    state = {
        "progress": progress.as_json(),
        "metrics_bytes": session.metrics_log.sync() if session.metrics_log else None,
        "due": due,
    }
    if runtime.is_sharded:
        temporary = runtime.run_on_main_process(lambda: begin_checkpoint(run, progress.step))
        write_shards(session, temporary)
        return runtime.run_on_main_process(lambda: finish_checkpoint(session, temporary, state))
    return runtime.run_on_main_process(lambda: save_unsharded(session, progress.step, state))


def is_complete(path: Path) -> bool:
    """Return whether a checkpoint exists and its step was logged, evaluated and saved."""
    return path.exists() and read_state(path).get("taken") is None


def save_after_error(session: Session, standing: RunState, error: Exception) -> Path | None:
    """Save the steps that an error would lose, as far as this process can without the others.

    Not after a loss that is not a number, because the weights may be damaged, nor after an error of the disk.
    """
    if standing.saved or not session.runtime.is_main_process or session.runtime.is_sharded:
        return None
    if isinstance(error, DivergedError | StorageError):
        return None
    state = {
        "progress": standing.progress.as_json(),
        "metrics_bytes": standing.metrics_bytes,
        "due": standing.due,
        "taken": asdict(standing.pending_step) if standing.pending_step else None,
    }
    try:
        if is_complete(get_checkpoint_path(session.run, standing.progress.step)):
            return None  # the error came after the save, while the others were told
        if session.metrics_log:
            session.metrics_log.sync()
        with torch.no_grad():
            for name, tensor in session.model.named_buffers():
                if name in standing.buffers:
                    tensor.copy_(standing.buffers[name])
        return save_unsharded(session, standing.progress.step, state)
    except (RegardError, OSError, RuntimeError):
        return None  # the error that ended the run is the one to report


def copy_buffers(session: Session) -> dict[str, Tensor]:
    """Return copies of the buffers: unlike weights they change in the forward pass, also in a step that fails."""
    lasting = session.model.state_dict(keep_vars=True).keys()
    return {name: tensor.detach().clone() for name, tensor in session.model.named_buffers() if name in lasting}


def save_unsharded(session: Session, step: int, state: Mapping[str, Any]) -> Path:
    """Write a checkpoint by one process and return its path. If that fails, nothing is left."""
    temporary = begin_checkpoint(session.run, step)
    try:
        with wrap_storage_errors(f"checkpoint {step}", session.run):
            write_file(temporary / "weights.safetensors", to_safetensors(collect_tensors(session.model)))
            moments = collect_optimizer_tensors(session.optimizer, session.model)
            write_file(temporary / "optimizer.safetensors", to_safetensors(moments))
        return finish_checkpoint(session, temporary, state)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def begin_checkpoint(run: Path, step: int) -> Path:
    """Return a temporary folder for a checkpoint."""
    with wrap_storage_errors(f"checkpoint {step}", run):
        return create_temporary(run, step)


def write_shards(session: Session, temporary: Path) -> None:
    """Write the shards of this process into a temporary checkpoint."""
    from regard.training.shards import save_shards

    with wrap_storage_errors("checkpoint", session.run):
        save_shards(collect_tensors(session.model), temporary / "weights")
        save_shards(collect_optimizer_tensors(session.optimizer, session.model), temporary / "optimizer")


def finish_checkpoint(session: Session, temporary: Path, state: Mapping[str, Any]) -> Path:
    """Seal a temporary checkpoint, tidy up and return its final path."""
    with wrap_storage_errors("checkpoint", session.run):
        final = seal(temporary, state)
    tidy_checkpoints(session.run, session.settings, session.task)
    return final
