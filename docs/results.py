"""Tables of the site from recorded results: a line of a page that is a link to one of benchmarks/results."""

import json
import re
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # for the formats of benchmarks
TABLE = re.compile(r"^\[.+\]\([./]+benchmarks/results/([\w-]+)\.json\)$", re.MULTILINE)
HEADS = {
    "en": ("median", "from", "to", "recorded {date}, {processor}, torch {torch}"),
    "zh": ("中位数", "最小", "最大", "记录于 {date}，{processor}，torch {torch}"),
}
SPREAD = {"en": "median (smallest–largest)", "zh": "中位数（最小–最大）"}
CLAIM_HEADS = {
    "en": (
        "median (quartiles)",
        "ours must be",
        "recorded {date}, {threads} threads, others kept {others} cores busy, {processor}",
    ),
    "zh": (
        "中位数（四分位数）",
        "我们的必须",
        "记录于 {date}，{threads} 个线程，其他进程占用 {others} 个核，{processor}",
    ),
}
NOTHING = {
    "en": "Not recorded yet: `python -m benchmarks.{name}` measures it on a machine that does nothing else.",
    "zh": "尚未记录：在空闲的机器上运行 `python -m benchmarks.{name}` 即可测量。",
}
PHRASES = {
    " heads, ": " 个头，",
    " heads of ": " 个头，",
    " tokens": " 个词元",
    ", bytes of the cell": "，单元格的字节数",
    ", time to draw": "，画出所需的时间",
    ", memory of the tab": "，标签页的内存",
    "the page, ": "网页，",
    "frame over all heads": "在所有头上移动时的一帧",
    "first paint": "首次绘制",
    "first map": "第一幅图",
    "regard, panel": "regard 的面板",
    "over ": "超过 ",
    ": ": "：",
}
CHINESE = {
    "Attention in a cell and on the page": "单元格里和网页上的注意力",
    "the same inputs and parameters: largest difference, relative": "同样的输入和参数：最大的相对差",
    "inversion copy: exact on lengths 9 to 13, 3 seeds": "复制任务：长度 9 至 13 上的完全一致率，3 个随机种子",
    "8 × 8 digits in three glimpses": "看三眼认 8 × 8 的数字",
    "MNIST in three glimpses": "看三眼认 MNIST",
    "Questions about one colored shape": "关于一个彩色图形的问题",
    "Facts about people": "关于人物的事实",
    "What is in a photograph": "照片里有什么",
    "What is in a photograph, one region at a time": "照片里有什么，一次只看一个区域",
    "Spoken digits, alone and in rows": "口述数字，单个或连续",
    "Spoken digits of a speaker never heard": "从未听过的人口述的数字",
    "Sequences of 2 to 10 letters, backwards": "2 至 10 个字母的序列，倒着说",
    "Stories with three supporting facts": "要用到三条事实的故事",
    "Captions of photographs, English to German": "照片的说明，英译德",
    "The vector under the same name": "同名之下的向量",
    "Counted, placed, colored shapes": "有数量、位置和颜色的图形",
    "Answers in paragraphs of Wikipedia": "维基百科段落中的答案",
    "% digit errors": "% 数字错误率",
    "% exact": "% 完全一致",
    "% of weights at the right place": "% 权重落在正确的位置",
    "% of captions right to the word": "% 一字不差的描述",
    "gated heads": "门控头",
    "plain net, as many parameters": "普通网络，参数一样多",
    "stacked": "堆叠注意力",
    "co-attention": "协同注意力",
    "cross-modal Transformer": "跨模态 Transformer",
    "attention flow": "双向注意力流",
    "without attention": "没有注意力",
    "retrieval from noise: % right, 3 seeds": "在噪声中检索：答对的百分比，3 个种子",
    **{f"width {width}, 400 updates": f"宽度 {width}，更新 400 次" for width in (16, 64, 512)},
    **{f"{keys} keys, 3000 updates": f"{keys} 个键，更新 3000 次" for keys in (16, 32, 64)},
    "dot": "点积",
    "scaled-dot": "缩放点积",
    "bilinear": "双线性（general）",
    "additive": "加性",
    "concat": "拼接",
    "cosine": "余弦",
    "gaussian": "高斯核",
    "location": "基于位置",
    "sequences said backwards, 300 updates without a warm-up: % of letters right, 3 seeds": "逆序，更新 300 "
    "次，没有预热：答对的字母百分比，3 个种子",
    "norm first": "规范化在前",
    "norm last": "规范化在后",
    **{f"{depth} block{'s' * (depth > 1)}": f"{depth} 块" for depth in (1, 4, 12)},
    "sequences of 2 to 24 letters said backwards, 1500 updates: % of letters right, 3 seeds": "2 至 24 "
    "个字母逆序，更新 1500 次：答对的字母百分比，3 个种子",
    "layer norm": "层规范化",
    "batch norm": "批量规范化",
    "batch norm, statistics of the tested batch": "批量规范化，用测试批次的统计量",
    **{
        f"{batches}: {own}": f"{words}：{length}"
        for batches, words in (
            ("trained on mixed batches", "批次中长度混合"),
            ("trained on batches of one length", "每批一种长度"),
        )
        for own, length in (("lengths 2 to 24", "长度 2 至 24"), ("length 12", "长度 12"))
    },
    "next vector by three rules: squared error, 3 seeds": "下一个向量，三种规则：平方误差，3 个种子",
    "the last vector again": "重复最后一个向量",
    "the mean of all vectors": "所有向量的平均",
    "the mean, then V: no attention": "平均后乘 V：没有注意力",
    "seven steps: no embedding, gradient descent": "七个步骤：没有嵌入，梯度下降",
    "the task: embedding, positions, Adam": "完整任务：嵌入、位置编码、Adam",
    "retrieval": "检索",
    "rotation": "旋转",
    "linear": "线性",
    "retrieval of one item, trained on 4 to 16 items: %, 3 seeds": "检索一项，训练时有 4 至 16 项：%，3 个种子",
    **{
        f"{name}, {score}": f"{name}，{words}"
        for name in ("softmax", "entmax", "sparsemax")
        for score, words in (("scores within ±5", "评分在 ±5 之内"), ("learned scores", "学得的评分"))
    },
    **{
        f"{quantity}, {items} items": f"{words}，{items} 项"
        for items in (16, 64, 256, 1024)
        for quantity, words in (
            ("right", "答对"),
            ("weight at the right item", "正确一项的权重"),
            ("share of the greatest entropy", "熵占最大熵的比例"),
        )
    },
    "inversion invert: exact, 3 seeds": "逆序：完全一致的百分比，3 个种子",
    "no attention": "没有注意力",
    "Luong, dot": "Luong，点积",
    "Luong, general": "Luong，general",
    "Luong, concat": "Luong，concat",
    "lengths 2 to 20": "长度 2 至 20（训练过的）",
    "lengths 21 to 31": "长度 21 至 31（更长的）",
    "length 40": "长度 40",
    "soft": "软注意力",
    "hard": "硬注意力",
    "location-aware": "位置感知",
    "invert": "逆序",
    "copy": "复制",
    "sort": "排序",
    "invert, no attention": "逆序，没有注意力",
    "three hops": "三跳",
    "seven steps": "七个步骤",
    "global": "全局注意力",
    "local-m (monotonic)": "local-m（单调）",
    "local-p (predicted)": "local-p（预测）",
    "Bahdanau: additive, before the cell": "Bahdanau：加性，在循环单元之前",
    "Luong: general, after the cell, input feeding": "Luong：general，在循环单元之后，输入馈送",
    "Luong: general, after the cell": "Luong：general，在循环单元之后",
    "inversion copy: exact, 3 seeds": "复制序列：完全一致的百分比，3 个种子",
    "inversion invert: exact on lengths 2 to 20, 3 seeds": "逆序，长度 2 至 20：完全一致的百分比，3 个种子",
    "lengths 2 to 10": "长度 2 至 10（训练过的）",
    "lengths 11 to 16": "长度 11 至 16（更长的）",
    "hard, REINFORCE": "硬，REINFORCE",
    "hard, Gumbel": "硬，Gumbel",
    "hard, Gumbel and straight-through": "硬，Gumbel 加直通",
    "hard, best and straight-through": "硬，取最大加直通",
    "captioning scenes: cosine between the gradient of the attention and that of the exact expectation on the first "
    "words of two scenes, 3 seeds": "图像描述：两幅图的前几个词上，注意力的梯度与精确期望的梯度的余弦，3 个种子",
}


def localize(text: str, language: str) -> str:
    """Return the words of a table in a language; names of systems and measures are the same in both."""
    if language != "zh":
        return text
    if text not in CHINESE and "; " in text:  # a system, and what it was measured on
        return "；".join(localize(part, language) for part in text.split("; "))
    return CHINESE.get(text, text.replace("without ", "不含 "))


def localize_phrases(text: str, language: str) -> str:
    """Return the name of a case or an amount in a language, phrase by phrase: it has numbers in it."""
    for english, chinese in PHRASES.items() if language == "zh" else ():
        text = text.replace(english, chinese)
    return text


def fill_tables(text: str, language: str) -> str:
    """Replace every line of a page that is a link to a result by its table."""
    return TABLE.sub(lambda found: render_result(found[1], language), text)


def render_result(name: str, language: str) -> str:
    """Return the table of a recorded comparison, task or claim; of a claim that is not measured yet, how to do so."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return NOTHING[language].format(name=name.replace("compare-", "comparisons "))
    result = json.loads(path.read_text(encoding="utf-8"))
    return render_claim(result, language) if "cases" in result else render_table(result, language)


def render_claim(result: dict[str, Any], language: str) -> str:
    """Return a row for each contender of each case of a claim, and the bound of ours."""
    from benchmarks.formats import format_bound, format_entry
    from benchmarks.results import Check, Entry

    measured, bound, origin = CLAIM_HEADS[language]
    lines = [f"| {localize(result['title'], language)} | {measured} | {bound} |", "|---|---|---|"]
    for case in result["cases"]:
        checks = {check["says"]: Check(**check) for check in case["checks"]}
        for entry in (Entry(**values) for values in case["entries"]):
            name = localize_phrases(f"{case['name']}: {entry.name}", language)
            amount = localize_phrases(format_entry(entry, case["unit"]), language)
            limits = [check for says, check in checks.items() if says.endswith(f" {entry.name}")]
            wanted = "; ".join(f"{format_bound(check)}{'' if check.holds else ' ✗'}" for check in limits)
            lines.append(f"| {name} | {amount} | {wanted} |")
        missing = (localize_phrases(f"{case['name']}: {name}", language) for name in case["missing"])
        lines += [f"| {name} | — | |" for name in missing]
    return "\n".join([*lines, "", f"*{origin.format(**result['setting'])}*"])


def render_table(result: dict[str, Any], language: str) -> str:
    """Return the rows of a comparison, or the runs of a task, as a table with what it was measured on."""
    from benchmarks.formats import tabulate_rows

    median, least, most, origin = HEADS[language]
    if "found" in result:
        title, rows = localize(result["found"]["title"], language), result["found"]["rows"]
        if any("; " in row["name"] for row in rows):
            lines = tabulate_rows(rows, partial(localize, language=language))
            rows, lines[0] = [], lines[0].replace("| |", f"| {title}: {SPREAD[language]} |", 1)
        else:
            lines = [f"| {title} | {median} | {least} | {most} |", "|---|---|---|---|"]
        for row in rows:
            values = row["values"]
            numbers = (statistics.median(values), min(values), max(values))
            lines.append(
                f"| {localize(row['name'], language)} | " + " | ".join(f"{number:.4g}" for number in numbers) + " |"
            )
    else:
        lines = [f"| {localize(result['title'], language)} | {localize(result['unit'], language)} |", "|---|---|"]
        for run in result["runs"]:
            lines.append(f"| {localize(run['name'], language)} | {find_metric(run, result['metric'])} |")
    machine = result["machine"]
    note = origin.format(date=result["date"], processor=machine["processor"], torch=machine["torch"])
    return "\n".join([*lines, "", f"*{note}*"])


def find_metric(run: dict[str, Any], name: str) -> str:
    """Return one metric of a run, whose parts are separated by dots; the last of them if the part has others."""
    found: Any = run["scores"] if "scores" in run else run.get("metrics", {})
    if name in found:
        return f"{found[name]:.4g}"
    for part in name.split("."):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return f"{found:.4g}" if isinstance(found, int | float) else "—"
