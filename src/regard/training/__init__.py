"""Training: a task goes in, events come out, and a run folder documents itself.

for event in train(task, config):
    print(event)
"""

from regard.training.averaging import average_checkpoints
from regard.training.checkpoint import find_checkpoints
from regard.training.config import configure
from regard.training.events import (
    Evaluated,
    Event,
    Finished,
    Noted,
    Saved,
    Started,
    Stepped,
    event_to_json,
)
from regard.training.launch import launch
from regard.training.loop import train
from regard.training.settings import Intervals, Optimizer, RunConfig, Schedule, StopCriteria, Training, configure_short_training
from regard.training.task import LazyBatches, Goal, Loss, DataShare, Task
from regard.training.tensors import restore_weights, read_safetensors
from regard.training.toml import to_toml

__all__ = [
    "LazyBatches",
    "Evaluated",
    "Event",
    "Intervals",
    "Finished",
    "Goal",
    "Loss",
    "Noted",
    "Optimizer",
    "DataShare",
    "RunConfig",
    "Saved",
    "Schedule",
    "Started",
    "Stepped",
    "StopCriteria",
    "Task",
    "Training",
    "average_checkpoints",
    "configure_short_training",
    "find_checkpoints",
    "configure",
    "launch",
    "event_to_json",
    "restore_weights",
    "to_toml",
    "train",
    "read_safetensors",
]
