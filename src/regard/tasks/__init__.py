"""Tasks: what a model learns to do, from its data to a picture of where it looked."""

from regard.tasks.registry import TASKS, TaskEntry, read_config, import_task, read_task_name, build_task

__all__ = ["TASKS", "TaskEntry", "read_config", "import_task", "read_task_name", "build_task"]
