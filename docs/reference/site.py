"""Write the pages of the reference."""

from collections.abc import Callable
from pathlib import Path

from reference import programs
from reference.names import PublicName, collect_pages
from reference.rendering import render_name

CHINESE_TITLES = {
    "index": "参考",
    "attend": "attend 算子",
    "scores": "评分函数",
    "biases": "偏置",
    "masks": "掩码",
    "normalizers": "归一化",
    "aggregates": "聚合",
    "layers": "层",
    "models": "模型与搜索",
    "inspect": "观察与度量",
    "draw": "画图",
    "training": "训练",
    "tasks": "任务",
    "data": "数据",
    "export": "导出",
    "testing": "检验自己的部件",
    "commands": "命令",
    "configuration": "配置字段",
    "server": "服务器 API",
}
ENGLISH_TITLES = {
    name: {"attend": "attend", "server": "Server API", "index": "Reference", "testing": "Testing your parts"}.get(
        name, name.capitalize()
    )
    for name in CHINESE_TITLES
}
TITLES = {"en": ENGLISH_TITLES, "zh": CHINESE_TITLES}
PROGRAMS: dict[str, Callable[[str], str]] = {
    "commands": programs.render_commands,
    "configuration": programs.render_configuration,
    "server": programs.render_server,
}


def write_reference(folder: Path, language: str) -> int:
    """Write all pages of the reference in a language into a folder, and return how many names they have."""
    folder.mkdir(parents=True, exist_ok=True)
    names = collect_pages()
    texts = {page: "\n".join(render_name(each, language) for each in own) for page, own in names.items()}
    texts["tasks"] = programs.render_tasks(language) + "\n" + texts["tasks"]
    texts |= {page: render(language) for page, render in PROGRAMS.items()}
    texts["index"] = render_index(names, language)
    for page, text in texts.items():
        (folder / f"{page}.md").write_text(f"# {TITLES[language][page]}\n\n{text}\n", encoding="utf-8")
    return sum(map(len, names.values()))


def render_index(pages: dict[str, list[PublicName]], language: str) -> str:
    """Return all names with a line each, by page."""
    lines: list[str] = []
    for page, names in pages.items():
        lines += [f"## [{TITLES[language][page]}]({page}.md)", "", "| | |", "|---|---|"]
        for each in names:
            text = each.chinese if language == "zh" else each.summary
            lines.append(f"| [`{each.name}`]({page}.md#{each.name}) | {text.replace('|', chr(92) + '|')} |")
        lines.append("")
    return "\n".join(lines)
