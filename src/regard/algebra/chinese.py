"""One line of Chinese for every entry of the catalog, by family and name, in the words of the Chinese documents."""

from collections.abc import Mapping

LINES: Mapping[str, Mapping[str, str]] = {
    "score": {
        "dot": "点积：查询与键的内积。",
        "scaled-dot": "缩放点积：内积除以宽度的平方根，使方差保持为一。",
        "bilinear": "双线性（general）：经过一个可学习矩阵的内积。",
        "low-rank": "低秩双线性：可学习矩阵由两个窄矩阵相乘而成。",
        "concat": "拼接（concat）：查询与键首尾相接，经过同一个矩阵。",
        "additive": "加性注意力（Bahdanau）：查询与键经过只有一个隐藏层的小网络。",
        "location": "基于位置：评分只由查询决定，与键的内容无关。",
        "cosine": "余弦：查询与键夹角的余弦，除以温度。",
        "learned-cosine": "余弦，温度由训练得到。",
        "gaussian": "高斯核：查询与键的距离越近，评分越高。",
        "learned-gaussian": "高斯核，带宽由训练得到。",
        "laplacian": "拉普拉斯核：按各坐标差的绝对值之和衡量远近。",
        "learned-laplacian": "拉普拉斯核，带宽由训练得到。",
        "capped": "封顶：把任意评分平滑地压进 (−c, c)。",
        "features": "特征映射：查询与键的非负特征的内积，用于线性注意力。",
        "dot+gaussian": "两个评分之和：点积加高斯核。",
        "dot+1": "缩放点积加一个常数：softmax 看不见它，sigmoid 看得见。",
        "dot+laplacian": "两个评分之和：缩放点积加拉普拉斯核。",
    },
    "bias": {
        "none": "没有偏置。",
        "alibi": "ALiBi：离得越远评分越低，每个头有固定的斜率。",
        "relative": "相对位置（T5）：每个头、每个距离区间各有一个可学习的数。",
        "prior": "先验：每个键一个数，所有查询共用。",
        "dense": "整表：每一对查询与键各写出一个数。",
    },
    "mask": {
        "full": "无掩蔽：每个查询可以看到每个键。",
        "causal": "因果掩蔽：查询只看到自己和之前的位置。",
        "causal-from-first": "从首位对齐的因果掩蔽：第一个查询看到第一个键，以后每个查询多看一个。",
        "query-lengths": "逐查询有效长度：每个查询只看到它自己的前若干个键。",
        "window": "窗口：查询只看到自己前后若干个键（局部注意力）。",
        "causal-window": "因果窗口：查询只看到自己和之前的若干个键。",
        "around": "中心窗口：查询只看到给定中心附近的键（Luong 的局部注意力）。",
        "lengths": "有效长度：只有前若干个键是真的，其余是填充。",
        "prefix": "前缀：所有查询都看到前若干个键，其余按因果掩蔽。",
        "documents": "文档：查询只看到同一篇文档的键，用于拼接的序列。",
        "table": "整表：逐对写出允许与否。",
        "causal&lengths": "交集：因果掩蔽，并且在有效长度之内。",
        "window&documents": "交集：在窗口之内，并且属于同一篇文档。",
        "not-causal": "补集：只看到之后的位置。",
        "causal|prefix": "并集：因果掩蔽所允许的，或者前缀之内的。",
    },
    "normalizer": {
        "softmax": "softmax：权重与评分的指数成正比。",
        "tempered": "带温度的 softmax：温度越高，权重越均匀。",
        "softmax-plus-one": "分母加一的 softmax：可以什么都不看。",
        "sparsemax": "sparsemax：单纯形上离评分最近的点，多数权重为零。",
        "entmax-1.5": "entmax-1.5：介于 softmax 与 sparsemax 之间。",
        "entmax": "α-entmax：α 从 1（softmax）经 2（sparsemax）到更稀疏，可以学习。",
        "sigmoid": "sigmoid：每一对各自得到权重，各行之和不必为一。",
        "row-total": "除以行和：用于从不为负的评分，例如线性注意力。",
        "local-p": "Luong 的 local-p：softmax 乘以中心附近的高斯，不再归一。",
        "monotonic": "单调注意力的期望对齐：只向前走，用于训练。",
        "hard-monotonic": "硬单调注意力：逐个键决定停或走，用于推理。",
        "chunkwise": "分块单调注意力：在停下的键之前的一小块内做 softmax。",
    },
    "aggregate": {
        "soft": "软注意力：值的加权平均。",
        "argmax": "硬注意力：取权重最大的值，梯度按软注意力传递。",
        "gumbel": "Gumbel 软采样：对数权重加 Gumbel 噪声后再做 softmax。",
        "gumbel-straight": "直通 Gumbel：前向硬采样，反向用软采样的梯度。",
        "sample": "随机硬注意力：按权重抽取一个值，并给出对数概率，用于 REINFORCE。",
    },
}


def describe_in_chinese(family: str, name: str) -> str:
    """Return the line of an entry; empty if it has none.

    >>> describe_in_chinese("aggregate", "soft")
    '软注意力：值的加权平均。'
    """
    return LINES.get(family, {}).get(name, "")
