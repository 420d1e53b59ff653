"""The few figures of the READMEs, in both languages, from the results: what a user gains beside the peers they know."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from benchmarks.formats import format_number
from benchmarks.recipes.runs import TaskResult
from benchmarks.results import Result

Language = Literal["en", "zh"]
PEER_PREFIX = "faster than "


class Highlight(NamedTuple):
    """One check of a claim that is shown in the READMEs, and what it measures, in both languages."""

    claim: str
    case: int
    peer: str
    words: Mapping[Language, str]


class TaskRow(NamedTuple):
    """The recipe whose result stands for a task, and what it does, in both languages."""

    recipe: str
    words: Mapping[Language, str]


HIGHLIGHTS = (
    Highlight(
        "additive_backward",
        1,
        "JoeyNMT",
        {"en": "additive attention (Bahdanau), 1,024 × 1,024, with gradients", "zh": "加性注意力，1024 × 1024，含梯度"},
    ),
    Highlight(
        "window",
        0,
        "SDPA with a float mask",
        {"en": "a window of 256 at length 16,384, with gradients", "zh": "长度 16384、窗口 256 的局部注意力，含梯度"},
    ),
    Highlight(
        "alpha_entmax",
        1,
        "entmax_bisect",
        {"en": "α-entmax, α learned for each head, with gradients", "zh": "每个头学习 α 的 α-entmax，含梯度"},
    ),
    Highlight(
        "gaussian_cdist",
        0,
        "torch.cdist",
        {"en": "Gaussian attention (Nadaraya–Watson), 1,024 × 1,024", "zh": "高斯核注意力，1024 × 1024"},
    ),
    Highlight(
        "train_transformer",
        0,
        "OpenNMT-py",
        {"en": "a training step of a small Transformer", "zh": "训练小 Transformer 的一步"},
    ),
    Highlight(
        "train_recurrent",
        0,
        "OpenNMT-py",
        {"en": "a training step of Bahdanau's model", "zh": "训练 Bahdanau 模型的一步"},
    ),
    Highlight("beam_transformer", 0, "OpenNMT-py", {"en": "translating with a beam of 5", "zh": "束宽为 5 的翻译"}),
    Highlight(
        "observing",
        0,
        "transformers, eager with output_attentions",
        {"en": "GPT-2 with its attention recorded, 1,024 tokens", "zh": "记录 GPT-2 的注意力，1024 个词元"},
    ),
)
TASK_ROWS = (
    TaskRow(
        "multi30k-transformer",
        {
            "en": "translation: Bahdanau, Luong, Transformer, convolution",
            "zh": "机器翻译：Bahdanau、Luong、Transformer、卷积",
        },
    ),
    TaskRow("flickr8k", {"en": "captions: show, attend and tell, soft and hard", "zh": "看图说话：软注意力与硬注意力"}),
    TaskRow("fsdd", {"en": "speech: listen, attend and spell", "zh": "语音识别：Listen, Attend and Spell"}),
    TaskRow(
        "easy-vqa", {"en": "questions about images: stacked and co-attention", "zh": "视觉问答：堆叠注意力、协同注意力"}
    ),
    TaskRow("squad", {"en": "reading: bidirectional attention flow", "zh": "阅读理解：双向注意力流 BiDAF"}),
    TaskRow("memory", {"en": "stories: an external memory in hops", "zh": "外部记忆：多跳问答"}),
    TaskRow("mnist", {"en": "digits: gated heads with a memory", "zh": "手写数字：带门控头和记忆的注意力"}),
    TaskRow("inversion", {"en": "sequences inverted, copied, sorted", "zh": "Seq2Seq：逆序、复制、排序"}),
    TaskRow("regression", {"en": "kernel regression with a learned bandwidth", "zh": "核回归：可学习的带宽"}),
    TaskRow("next-vector", {"en": "the next vector, in seven steps", "zh": "七步预测下一个向量"}),
)
HEADS: Mapping[Language, tuple[str, str]] = {
    "en": ("| measured, on two cores | faster | than |", "| task, `regard train …` | data | result |"),
    "zh": ("| 实测，两个核 | 快 | 相比 |", "| 任务，`regard train …` | 数据 | 结果 |"),
}
MORE: Mapping[Language, tuple[str, str]] = {
    "en": (
        "All claims, also those that fall short, with every peer: [docs/benchmarks.md](docs/benchmarks.md).",
        "All results, beside published ones and without attention: [docs/results.md](docs/results.md).",
    ),
    "zh": (
        "全部实测（含未达标的）与每个对手：[docs/benchmarks.md](docs/benchmarks.md)。",
        "全部结果，含已发表的和没有注意力的：[docs/results.md](docs/results.md)。",
    ),
}


def render_highlights(found: Sequence[Result], language: Language) -> str:
    """Return the table of the highlights that were measured."""
    results = {result.claim: result for result in found}
    rows = [HEADS[language][0], "|---|---|---|"]
    for claim, case, peer, words in HIGHLIGHTS:
        if claim not in results:
            continue
        checks = {check.says.removeprefix(PEER_PREFIX): check for check in results[claim].cases[case].checks}
        rows.append(f"| {words[language]} | **{format_number(checks[peer].value)}×** | {peer} |")
    return "\n".join([*rows, "", MORE[language][0]])


def render_tasks(found: Mapping[str, TaskResult], language: Language) -> str:
    """Return the table with one result for each task."""
    rows = [HEADS[language][1], "|---|---|---|"]
    for recipe, words in TASK_ROWS:
        if recipe in found:
            result = found[recipe]
            rows.append(
                f"| `{result.task}` · {words[language]} | {result.data} | **{result.value:.4g}** {result.unit} |"
            )
    return "\n".join([*rows, "", MORE[language][1]])
