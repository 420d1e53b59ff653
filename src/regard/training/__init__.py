"""Training: a task goes in, events come out, and a run folder documents itself.

for event in train(task, config):
    print(event)
"""

from regard.training.average import average_checkpoints
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
from regard.training.settings import (
    Intervals,
    Optimizer,
    RunConfig,
    Schedule,
    StopCriteria,
    Training,
    configure_cosine_training,
)
from regard.training.task import DataShare, Goal, LazyBatches, Loss, Task
from regard.training.tensors import read_safetensors, restore_weights
from regard.training.toml import to_toml

__all__ = [
    "DataShare",
    "Evaluated",
    "Event",
    "Finished",
    "Goal",
    "Intervals",
    "LazyBatches",
    "Loss",
    "Noted",
    "Optimizer",
    "RunConfig",
    "Saved",
    "Schedule",
    "Started",
    "Stepped",
    "StopCriteria",
    "Task",
    "Training",
    "average_checkpoints",
    "configure",
    "configure_cosine_training",
    "event_to_json",
    "find_checkpoints",
    "launch",
    "read_safetensors",
    "restore_weights",
    "to_toml",
    "train",
]
