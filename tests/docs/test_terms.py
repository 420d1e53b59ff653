"""Every term of the articles leads somewhere: to a heading that the search finds, a name that exists, and a page."""

import importlib.util
import re
from pathlib import Path

import pytest

import regard
import regard.layers
import regard.layers.estimators
from regard.inspect import measure

DOCS = Path(__file__).parents[2] / "docs"
TERMS = DOCS / "zh" / "articles" / "terms.md"
# The words that the articles use for their own ideas, as they write them.
WORDS = re.findall(
    r"\S+",
    """
查询 键 值 注意力权重 注意力分布 注意力值 注意力汇聚 加权平均 核函数 评分函数 打分函数
对齐函数 掩蔽 有效长度 填充词元 加性注意力 缩放点积注意力 内积 上下文向量 语义向量 注意力向量
对齐 编码器 解码器 软注意力 硬注意力 可微分 全局注意力 局部注意力 长距离依赖 多头注意力
键值对注意力 自注意力 双向注意力 计算复杂度 最长路径 并行度 位置编码 绝对位置 相对位置
残差连接 层规范化 批量规范化 逐位前馈网络 注意力头 关注矩阵 更新向量 注意力池 门控单元
外部记忆 网络容量 信息过载 最大汇聚 嵌入 机器翻译 图像描述生成 语音识别 视觉问答 跨模态融合
自主性提示
""",
)
LAYERS = ("Pooling", "GatedHeads", "AttentionFlow", "Hops", "EncoderBlock", "DecoderBlock", "Sinusoidal", "build_model")


def test_every_word_of_the_articles_is_a_heading() -> None:
    headings = "\n".join(line for line in TERMS.read_text(encoding="utf-8").splitlines() if line.startswith("## "))
    assert [word for word in WORDS if word not in headings] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_term_has_a_name_and_a_page(language: str) -> None:
    text = (DOCS / language / "articles" / "terms.md").read_text(encoding="utf-8")
    sections = text.split("\n## ")[1:]
    assert len(sections) >= len(WORDS)
    for section in sections:
        assert re.search(r"`.+` · \[.+\]\(\.\./\w+(-\w+)*/[\w-]+\.md\)", section), section
    for name in re.findall(r"`([A-Za-z]\w+)(?:\(|`|\.)", text):
        homes = (regard, regard.layers, regard.layers.estimators, measure)
        known = {"regard", "torch", "nn", "layer", "build_model", "GatedState"}
        assert name in known or any(hasattr(home, name) for home in homes), name


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_stands_in_a_page_with_an_example_that_runs(name: str) -> None:
    blocks = [
        block
        for path in (DOCS / "en").rglob("*.md")
        for block in re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    ]
    assert any(re.search(rf"\b{name}\b\S*\(", block) for block in blocks)


def test_chinese_is_cut_into_words_for_the_search() -> None:
    assert importlib.util.find_spec("jieba"), "without it the search finds no word inside a Chinese sentence"
    assert "u200b" in (DOCS / "mkdocs.yml").read_text(encoding="utf-8")
