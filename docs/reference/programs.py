"""What programs offer, as Markdown: commands, tasks with the fields of their configurations, and the server's API."""

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from cyclopts import App

from reference.names import CHINESE_TEXTS
from regard.cli import inventory
from regard.cli.commands import app
from regard.cli.dispatch import SHARED_COMMANDS, TASK_COMMANDS
from regard.cli.fields import Field, describe_fields
from regard.cli.train import OPTIONS, format_default
from regard.tasks import TASKS, import_task
from regard.web.limits import Limits
from regard.web.openapi import build_document

COLUMNS = "96"
OWN_FLAGS = {"train": "", **SHARED_COMMANDS}
VARIANTS = {
    **{f"{command} RUN ({task})": target for (task, command), target in TASK_COMMANDS.items()},
    "show positions": "regard.cli.show_positions:show",
    "show structure": "regard.cli.show_structure:show",
    "show FILE (recording)": "regard.cli.show_recording:show",
    "show --curves": "regard.cli.show_curves:show",
}
BOX = re.compile(r"[╭╮╰╯─│]")
TITLES = {
    "en": {
        "commands": "Every command with its flags, as `--help` says them.",
        "fields": ("field", "default", "meaning"),
        "shared": "Fields of every task",
        "options": "Options",
        "presets": "presets",
        "data": "data",
        "request": ("in", "name", "kind"),
        "answer": "answer",
        "other": "in another form",
    },
    "zh": {
        "commands": "每条命令及其参数，与 `--help` 所示相同。",
        "fields": ("字段", "默认值", "含义"),
        "shared": "所有任务共有的字段",
        "options": "选项",
        "presets": "预设",
        "data": "数据",
        "request": ("位置", "名字", "类型"),
        "answer": "回答",
        "other": "其他形式",
    },
}


def translate(text: str, language: str) -> str:
    """Return a text of the code in a language; the Chinese is in chinese.toml by the English text."""
    plain = " ".join(text.split())
    return CHINESE_TEXTS.get(plain, plain) if language == "zh" else plain


def list_commands() -> dict[str, str]:
    """Return every command with its line of help."""
    return {name: app[name].help or "" for name in app if not name.startswith("-")}


def read_help(name: str, target: str = "") -> str:
    """Return what `--help` of a command prints, without the frames of its tables."""
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    try:
        with contextlib.redirect_stdout(printed):
            if target:
                module, _, function = target.partition(":")
                own = App(name=f"regard {name}", help_format="plaintext", version_flags=[], help_flags=["--help"])
                own.default(getattr(import_module(module), function))
                own(["--help"], exit_on_error=False, result_action="return_value")
            else:
                app([*name.split(), "--help"], exit_on_error=False, result_action="return_value")
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    lines = [BOX.sub(" ", line).rstrip() for line in printed.getvalue().splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def render_commands(language: str) -> str:
    """Return the page of all commands."""
    lines = [TITLES[language]["commands"], ""]
    for name, summary in list_commands().items():
        lines += [f"## regard {name}", "", translate(summary, language), "", "```text", read_help(name), "```", ""]
        for variant, target in VARIANTS.items():
            if variant.split()[0] == name:
                call = re.sub(r" \(.*", "", variant)
                lines += [f"*{TITLES[language]['other']}*: `regard {variant}`", "", "```text"]
                lines += [read_help(call, target), "```", ""]
    return "\n".join(lines)


def render_tasks(language: str) -> str:
    """Return what each task learns, from which data, with which presets."""
    words = TITLES[language]
    lines: list[str] = []
    for name, entry in TASKS.items():
        task = import_task(name)
        learns = inventory.FAMILIES["task"][name].chinese if language == "zh" else f"Learn {entry.learns}."
        presets = ", ".join(f"`{preset}`" for preset in task.presets)
        lines += [
            f"## regard train {name}",
            "",
            learns,
            "",
            f"- {words['data']}: {translate(task.data_help, language)}",
        ]
        lines += [f"- {words['presets']}: {presets}", f"- `regard {entry.command}`", ""]
    return "\n".join(lines)


def render_configuration(language: str) -> str:
    """Return every field of every task: those that all tasks have, then those of each."""
    words = TITLES[language]
    fields = {name: list(describe_fields(import_task(name).default)) for name in TASKS}
    shared = set.intersection(*({each.name for each in own} for own in fields.values()))
    lines = [f"## {words['options']}", "", "| | |", "|---|---|"]
    lines += [f"| `--{name}` | {translate(text, language)} |" for name, text in OPTIONS.items()]
    first = next(iter(fields.values()))
    lines += ["", f"## {words['shared']}", "", *render_fields([f for f in first if f.name in shared], language)]
    for name, own in fields.items():
        lines += ["", f"## {name}", "", *render_fields([f for f in own if f.name not in shared], language)]
    return "\n".join(lines)


def render_fields(fields: list[Field], language: str) -> Iterator[str]:
    """Yield a table of fields."""
    yield "| " + " | ".join(TITLES[language]["fields"]) + " |"
    yield "|---|---|---|"
    for field in fields:
        meaning = translate(field.meaning, language)
        choices = ", ".join(f"`{choice}`" for choice in field.choices)
        meaning = "; ".join(filter(None, (meaning, choices))).replace("|", "\\|")
        yield f"| `{field.name}` | `{format_default(field.value) or '—'}` | {meaning} |"


def render_server(language: str) -> str:
    """Return every path of the server's API with its parameters and its answer."""
    lines: list[str] = []
    for path, operations in build_document(Limits())["paths"].items():
        for method, operation in operations.items():
            lines += [f"## {method.upper()} {path}", "", translate(operation["summary"], language), ""]
            lines += render_request(operation, TITLES[language]["request"])
            answer = operation["responses"]["200"]
            kinds = ", ".join(f"`{kind}`" for kind in answer["content"])
            text = "" if answer["description"] == "The answer." else " " + translate(answer["description"], language)
            lines += [f"{TITLES[language]['answer']}: {kinds}.{text}", ""]
    return "\n".join(lines)


def render_request(operation: Mapping[str, Any], heads: tuple[str, str, str]) -> list[str]:
    """Return a table of the parameters and of the body of a request; nothing if it has none."""
    rows = [(one["in"], f"`{one['name']}`", describe_schema(one["schema"])) for one in operation.get("parameters", ())]
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        for name, schema in body["schema"].get("properties", {}).items():
            rows.append((f"`{kind}`", f"`{name}`", describe_schema(schema)))
        if not body["schema"].get("properties"):
            rows.append((f"`{kind}`", "—", describe_schema(body["schema"])))
    table = ["| " + " | ".join(row) + " |" for row in (heads, ("---",) * 3, *rows)]
    return [*table, ""] if rows else []


def describe_schema(schema: Mapping[str, Any]) -> str:
    """Return the kind of a value and its bounds."""
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    bounds = [
        f"{key} {value}" for key, value in schema.items() if key in ("minimum", "maximum", "maxLength", "maxItems")
    ]
    return ", ".join([str(schema.get("format") or schema.get("type", "object")), *bounds])


def list_texts() -> Iterator[str]:
    """Yield every text of programs that the pages show, each of which needs its Chinese."""
    operations = [one for path in build_document(Limits())["paths"].values() for one in path.values()]
    tasks = [import_task(name) for name in TASKS]
    texts = [*list_commands().values(), *OPTIONS.values(), *(task.data_help for task in tasks)]
    texts += [field.meaning for task in tasks for field in describe_fields(task.default)]
    texts += [text for one in operations for text in (one["summary"], one["responses"]["200"]["description"])]
    yield from {" ".join(text.split()) for text in texts if text and text != "The answer."}
