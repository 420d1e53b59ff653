"""The fixed words of figures in English and Chinese. Figures take `language`; all else they write is the caller's."""

from typing import Literal, get_args

from regard.errors import wrong

Language = Literal["en", "zh"]
CHINESE = {
    "weight": "权重",
    "difference": "差",
    "query": "查询",
    "key": "键",
    "source": "源序列",
    "target": "目标序列",
    "head": "头",
    "head {}": "头 {}",
    "rows are queries, columns are keys": "行为查询，列为键",
    "above each picture: its gate": "各图上方的数字是门的值",
    "mean of heads": "各头平均",
    "each head by its own largest weight": "每个头以其自身的最大权重着色",
    "decoder attention": "解码器注意力",
    "cross-attention of layer {}": "第 {} 层交叉注意力",
    "position": "位置",
    "dimension": "维度",
    "value": "值",
    "cosine": "余弦",
    "encoding": "编码",
    "some dimensions": "部分维度",
    "similarity of positions": "位置之间的相似度",
    "sinusoidal positions": "正弦位置编码",
    "truth": "真实值",
    "training points": "训练点",
    "training points, sorted": "训练点（已排序）",
    "new points": "新点",
    "average": "平均",
    "fixed": "固定带宽",
    "gaussian": "高斯核",
    "learned": "学得带宽",
    "y, as the learned bandwidth has it": "y（按学得带宽）",
    "frame": "帧",
    "band": "频带",
    "time (s)": "时间（秒）",
    "glimpse {}": "第 {} 次注视",
    "look {}": "第 {} 次查看",
    "hop {}": "第 {} 跳",
    "hop": "跳",
    "fact": "事实",
    "question": "问题",
    "passage": "文章",
    "question: {}": "问题：{}",
    "answer: {}": "答案：{}",
    "input": "输入",
    "output": "输出",
    "vector": "向量",
    "sequence": "序列",
    "sequence → right vector": "序列 → 正确的向量",
    "where the last vector looked": "最后一个向量关注的位置",
    "where each word looked": "每个词关注的位置",
    "relative weight": "相对权重",
    "known": "已知",
    "forecast": "预测",
    "steps from the last known row": "距最后已知行的步数",
    "length": "长度",
    "convolution": "卷积",
    "recurrence": "循环",
    "self-attention": "自注意力",
    "formula": "公式",
    "seconds": "时间（秒）",
    "operations": "运算次数",
    "longest path": "最长路径",
    "steps in a row": "顺序步数",
    "positions at once": "可同时计算的位置数",
    "dilated convolution": "空洞卷积",
    "window": "窗口",
    "linear attention": "线性注意力",
    "items": "项数",
    "right": "答对",
    "weight at the right item": "正确一项的权重",
    "share of the greatest entropy": "熵占最大熵的比例",
    "scores within ±5": "评分在 ±5 之内",
    "learned scores": "学得的评分",
    "step": "步",
    "loss": "损失",
    "training": "训练",
    "validation": "验证",
    "learning rate": "学习率",
    "each cell is the largest of several": "每格为若干权重中的最大值",
    "numbers stand for what no font here can write": "编号代表本机字体无法书写的文字",
    "install {}": "请安装 {}",
    " or ": "或",
}


def check_language(language: str) -> None:
    """Raise unless figures have words in that language."""
    if language not in get_args(Language):
        raise wrong("language", language, " or ".join(get_args(Language)), "write language='zh' for Chinese words")


def localize(text: str, language: Language = "en") -> str:
    """Return a fixed word of figures in a language; what is not one of them stays as it is.

    >>> localize("weight", "zh"), localize("weight"), localize("BLEU", "zh")
    ('权重', 'weight', 'BLEU')
    """
    check_language(language)
    return CHINESE.get(text, text) if language == "zh" else text


def join_title(*parts: str) -> str:
    """Return a title of its parts, such as run, layer and head; empty ones are left out.

    >>> join_title("numbers-bahdanau", "", "head 3")
    'numbers-bahdanau · head 3'
    """
    return " · ".join(filter(None, parts))
