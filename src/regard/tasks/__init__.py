"""Tasks: what a model learns to do, from its data to a picture of its attention."""

from regard.tasks.registry import TASKS, TaskEntry, build_task, import_task, read_config, read_task_name

__all__ = ["TASKS", "TaskEntry", "build_task", "import_task", "read_config", "read_task_name"]
