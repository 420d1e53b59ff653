"""Tasks: what a model learns to do, from its data to a picture of where it looked."""

from regard.tasks.registry import TASKS, Entry, config_of, kit, task_name, task_of

__all__ = ["TASKS", "Entry", "config_of", "kit", "task_name", "task_of"]
