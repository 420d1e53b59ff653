"""Training: a task goes in, events come out, and a run folder documents itself.

for event in train(task, config):
    print(event)
"""

from regard.training.averaging import average
from regard.training.checkpoint import checkpoints
from regard.training.config import configure
from regard.training.events import (
    Evaluated,
    Event,
    Finished,
    Noted,
    Saved,
    Started,
    Stepped,
    record,
)
from regard.training.launch import launch
from regard.training.loop import train
from regard.training.settings import Every, Optimizer, RunConfig, Schedule, Stop, Training, brief
from regard.training.task import Batched, Goal, Loss, Part, Task
from regard.training.tensors import restore, unpack
from regard.training.toml import to_toml

__all__ = [
    "Batched",
    "Evaluated",
    "Event",
    "Every",
    "Finished",
    "Goal",
    "Loss",
    "Noted",
    "Optimizer",
    "Part",
    "RunConfig",
    "Saved",
    "Schedule",
    "Started",
    "Stepped",
    "Stop",
    "Task",
    "Training",
    "average",
    "brief",
    "checkpoints",
    "configure",
    "launch",
    "record",
    "restore",
    "to_toml",
    "train",
    "unpack",
]
