"""Write one public name as Markdown: its signature with shapes, its docstring, its methods, its plan and transforms."""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from doctests import fence_doctests

from reference.names import PublicName, first_paragraph, is_described
from regard.algebra.catalog import FAMILIES
from regard.cli.explain import CallOptions, plan_call

WIDTH = 92
PATH = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
TRANSFORMS = Path(__file__).parent.parent / "transforms.md"
PLAIN = {"score": "scaled-dot", "bias": "none", "mask": "full", "normalizer": "softmax", "aggregate": "soft"}
WORDS = {
    "en": {"names": "In the catalog", "plan": "How it is computed", "transforms": "Transforms", "members": "Members"},
    "zh": {"names": "目录中的名字", "plan": "怎样计算", "transforms": "torch 变换", "members": "成员"},
}


def render_name(public: PublicName, language: str) -> str:
    """Return the section of one name."""
    lines = [f"## {public.name} {{#{public.name}}}", ""]
    if language == "zh":
        lines += [public.chinese, ""]
    lines += ["```python", f"from {find_import(public)} import {public.name}", "", render_signature(public), "```", ""]
    if is_described(public.value):
        lines += [fence_doctests(inspect.getdoc(public.value) or ""), ""]
        lines += render_members(public.value, WORDS[language]["members"])
    lines += render_part(public.value, WORDS[language])
    return "\n".join(lines)


def find_import(public: PublicName) -> str:
    """Return the module to import a name from: the shortest that offers it."""
    if public.home.startswith("regard.algebra"):
        return "regard"
    if public.home in ("regard.inspect.draw", "regard.models.encoders", "regard.models.decoders"):
        return str(public.value.__module__)
    return public.home


def render_signature(public: PublicName) -> str:
    """Return the call with its parameters and their shapes; of a constant, what it holds."""
    value = public.value
    if not is_described(value):
        if isinstance(value, dict):
            return f"{public.name}: {', '.join(map(str, value))}"
        if isinstance(value, tuple):
            return f"{public.name}: {', '.join(str(getattr(each, 'name', each)) for each in value)}"
        return f"{public.name} = {shorten(repr(value))}"
    try:
        return format_call(public.name, inspect.signature(value))
    except (ValueError, TypeError):
        return f"class {public.name}"


def format_call(name: str, signature: inspect.Signature) -> str:
    """Return a signature on one line, or with a line for each parameter if it is long."""
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    whole = shorten(str(signature.replace(parameters=parameters)))
    if len(name) + len(whole) <= WIDTH:
        return name + whole
    texts: list[str] = []
    for number, parameter in enumerate(parameters):
        before = parameters[number - 1].kind if number else None
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            texts.append("*")
        texts.append(shorten(str(parameter)))
    returns = "" if signature.return_annotation is signature.empty else whole.rpartition(" -> ")[2]
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + ")" + (f" -> {returns}" if returns else "")


def shorten(text: str) -> str:
    """Return a text without the modules of its names: `torch.Tensor` is a `Tensor`."""
    text = re.sub(r"<(?:class|function) '?([\w.]+)'?(?: at 0x\w+)?>", r"\1", text)
    text = re.sub(r"<[\w.]+ object at 0x\w+>", "…", text)
    return PATH.sub("", text)


def render_members(value: Any, title: str) -> list[str]:
    """Return a list of the public methods and properties that a class defines itself."""
    if not inspect.isclass(value):
        return []
    lines = [line for name, member in vars(value).items() for line in render_member(value, name, member)]
    return [f"**{title}**", "", *lines, ""] if lines else []


def render_member(owner: type, name: str, member: Any) -> Iterator[str]:
    """Yield a line for a method or property; nothing for what is private or inherited from Python."""
    if name.startswith("_"):
        return
    called = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    if isinstance(member, property):
        text, call = inspect.getdoc(member) or "", name
    elif inspect.isfunction(called):
        text, call = inspect.getdoc(getattr(owner, name)) or "", format_line(name, called)
    else:
        return
    summary = first_paragraph(text) if text and "Define the computation performed at every call" not in text else ""
    yield f"- `{call}`" + (f": {summary}" if summary else "")


def format_line(name: str, function: Any) -> str:
    """Return a method's signature on one line."""
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    return name + shorten(str(signature.replace(parameters=parameters)))


def render_part(value: Any, words: dict[str, str]) -> list[str]:
    """Return what the catalog, the planner and docs/transforms.md know of a part; nothing of anything else."""
    entries = vars(value).get("catalog_entries", {}) if inspect.isclass(value) else {}
    if not entries:
        return []
    family = next(family for family, parts in FAMILIES.items() if next(iter(entries)) in parts)
    names = [" ".join([f"`{name}`", *(f"`{alias}`" for alias in entry.aliases)]) for name, entry in entries.items()]
    lines = [f"**{words['names']}**: {' · '.join(names)}", ""]
    first = next(iter(entries))
    plan, _ = plan_call(PLAIN | {family: first}, CallOptions())
    lines += [f"**{words['plan']}** (`regard explain {first}`)", "", "```text", plan.explain(), "```", ""]
    header, rows = read_transforms(family)
    own = [rows[name] for name in entries if name in rows]
    return [*lines, f"**{words['transforms']}**", "", *header, *own, ""] if own else lines


@cache
def read_transforms(family: str) -> tuple[list[str], dict[str, str]]:
    """Return the head and the rows of one table of docs/transforms.md."""
    section = TRANSFORMS.read_text(encoding="utf-8").split(f"\n## {family}\n")[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return table[:2], {line.split("`")[1]: line for line in table[2:]}
