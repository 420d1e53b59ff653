"""What the diagrams of attention and of the Transformer consist of. Data goes from left to right, or from below."""

from regard.inspect.draw.diagram import Arrow, Box, Diagram, Frame, Kind, Point, Words, join_boxes

ROWS = (1.6, 0.8, 0.0)  # inches: the first, the second and the last of a sequence
SIGN = (0.62, 0.36)  # inches of a box with a letter in it
WIDE = (1.75, 0.42)


def plan_pooling() -> Diagram:
    """Return query, keys and values as cues, and the attention pooling between them."""
    boxes = {
        "value": Box(Words("values\n(sensory inputs)", "值\n（感官输入）"), (0, 1.7), "input", size=(2.1, 0.5)),
        "key": Box(Words("keys\n(nonvolitional cues)", "键\n（非自主性提示）"), (0, 0.85), "input", size=(2.1, 0.5)),
        "query": Box(Words("query\n(volitional cue)", "查询\n（自主性提示）"), (0, 0), "state", size=(2.1, 0.5)),
        "pooling": Box(Words("attention pooling", "注意力汇聚"), (2.8, 0.85), "attention", "attend"),
        "output": Box(Words("output", "输出"), (4.9, 0.85), "output", ".output", (1.2, 0.42)),
    }
    arrows = [
        Arrow("value", "pooling", "side first"),
        Arrow("key", "pooling"),
        Arrow("query", "pooling", "side first"),
        Arrow("pooling", "output"),
    ]
    return Diagram(boxes, arrows)


def plan_scoring() -> Diagram:
    """Return the way from a query and its keys over scores and weights to the weighted sum of the values."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for row, number in zip(ROWS, "12m", strict=True):
        boxes |= {
            f"k{number}": Box(Words(f"$k_{number}$"), (0, row), "input", size=SIGN),
            f"a{number}": Box(Words(f"$a(q, k_{number})$"), (1.5, row), "attention", size=(1.0, 0.36)),
            f"w{number}": Box(Words(f"$\\alpha_{number}$"), (4.2, row), "attention", size=SIGN),
            f"v{number}": Box(Words(f"$v_{number}$"), (5.4, row), "input", size=SIGN),
        }
        arrows += [
            Arrow(f"k{number}", f"a{number}"),
            Arrow(f"a{number}", "softmax"),
            Arrow("softmax", f"w{number}"),
            Arrow(f"w{number}", f"v{number}"),
            Arrow(f"v{number}", "output"),
        ]
    boxes |= {
        "softmax": Box(Words("softmax"), (2.9, 0.8), "norm", "normalizer=", (0.95, 0.42)),
        "output": Box(Words("weighted sum", "加权和"), (6.9, 0.8), "output", ".output", (1.15, 0.42)),
        "scores": Box(Words(""), (1.5, -0.32), "text", size=(0.02, 0.02)),
        "query": Box(Words("query", "查询"), (1.5, -0.85), "state", size=(1.0, 0.36)),
    }
    for name, words, x in (
        ("keys", Words("keys", "键"), 0.0),
        ("weights", Words("weights", "注意力权重"), 4.2),
        ("values", Words("values", "值"), 5.4),
    ):
        boxes[name] = Box(words, (x, 2.05), "text", size=(1.0, 0.24))
    frame = Frame(Words("score", "评分函数"), (0.85, -0.3), (2.15, 2.2))
    return Diagram(boxes, [*arrows, Arrow("query", "scores")], [frame])


def plan_key_value() -> Diagram:
    """Return attention whose weights come from keys, while other vectors are summed."""
    boxes = {
        "query": Box(Words("query", "查询"), (0, 1.1), "state", size=(1.3, 0.42)),
        "key": Box(Words("keys", "键"), (0, 0.2), "input", size=(1.3, 0.42)),
        "score": Box(Words("score", "打分函数"), (2.1, 0.65), "attention", "score="),
        "softmax": Box(Words("softmax"), (4.1, 0.65), "norm", ".weights", (1.3, 0.42)),
        "sum": Box(Words("weighted sum", "加权平均"), (6.0, 0.65), "attention", "attend"),
        "value": Box(Words("values", "值"), (6.0, -0.3), "input", size=(1.3, 0.42)),
        "output": Box(Words("output", "输出"), (7.9, 0.65), "output", ".output", (1.2, 0.42)),
    }
    pairs = ("query score", "key score", "score softmax", "softmax sum", "value sum", "sum output")
    return Diagram(boxes, join_boxes(*pairs))


def plan_heads() -> Diagram:
    """Return multi-head attention: projections, attention in each head, and what joins them."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for x, name, words in (
        (0.0, "query", Words("queries", "查询")),
        (1.6, "key", Words("keys", "键")),
        (3.2, "value", Words("values", "值")),
    ):
        boxes[name] = Box(words, (x, 0), "input", size=(1.2, 0.36))
        boxes[f"{name} map"] = Box(Words("linear", "线性变换"), (x, 1.0), "layer", "Projections", (1.2, 0.42))
        arrows += [Arrow(name, f"{name} map"), Arrow(f"{name} map", "attend")]
    boxes |= {
        "attend": Box(Words("attention pooling", "注意力汇聚"), (1.6, 1.9), "attention", "attend"),
        "joined": Box(Words("concatenate", "连接"), (1.6, 3.05), "norm"),
        "map": Box(Words("linear", "线性变换"), (1.6, 3.75), "layer", "Projections"),
        "output": Box(Words("output", "输出"), (1.6, 4.4), "output", size=(1.2, 0.36)),
    }
    arrows += [Arrow("attend", "joined"), Arrow("joined", "map"), Arrow("map", "output")]
    low, high = (-0.75, 0.65), (3.95, 2.45)
    frames = [
        Frame(Words(""), (low[0] + 0.16, low[1] + 0.16), (high[0] + 0.16, high[1] + 0.16)),
        Frame(Words(""), (low[0] + 0.08, low[1] + 0.08), (high[0] + 0.08, high[1] + 0.08)),
        Frame(Words("each of h heads", "h 个头，各有一份"), low, high),
    ]
    return Diagram(boxes, arrows, frames)


def plan_transformer() -> Diagram:
    """Return encoder and decoder, each block with its residual connections and norms."""
    attend, norm = Words("multi-head\nself-attention", "多头自注意力"), Words("add and norm", "残差连接与层规范化")
    masked = Words("masked multi-head\nself-attention", "掩蔽多头自注意力")
    forward = Words("feed-forward network", "逐位前馈网络")
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    encoder = [("attend", attend, "Attention"), ("forward", forward, "FeedForward")]
    cross = ("cross", Words("encoder–decoder\nattention", "编码器–解码器注意力"), "Attention")
    decoder = [("attend", masked, "Attention, Causal"), cross, ("forward", forward, "FeedForward")]
    for side, x, words, parts, bend in (
        ("encoder", 0.0, Words("source", "源序列"), encoder, -1.05),
        ("decoder", 3.3, Words("target so far", "目标序列（已生成的部分）"), decoder, 1.05),
    ):
        boxes[side] = Box(words, (x, 0), "input", size=WIDE)
        boxes[f"{side} embed"] = Box(Words("embedding", "嵌入"), (x, 0.7), "layer", "nn.Embedding", WIDE)
        boxes[f"{side} place"] = Box(Words("add positions", "加上位置编码"), (x, 1.4), "layer", "Sinusoidal", WIDE)
        arrows += [Arrow(side, f"{side} embed"), Arrow(f"{side} embed", f"{side} place")]
        last = f"{side} place"
        for row, (name, said, ours) in enumerate(parts):
            part, after = f"{side} {name}", f"{side} {name} norm"
            kind: Kind = "layer" if name == "forward" else "attention"
            boxes[part] = Box(said, (x, 2.35 + 1.5 * row), kind, ours, (1.75, 0.62))
            boxes[after] = Box(norm, (x, 3.05 + 1.5 * row), "norm", "PostNorm", WIDE)
            arrows += [Arrow(last, part), Arrow(part, after), Arrow(part, after, "around", bend)]
            last = after
    boxes["linear"] = Box(Words("linear, softmax", "全连接层、softmax"), (3.3, 7.2), "layer", "nn.Linear", WIDE)
    boxes["output"] = Box(Words("next word", "下一个词元"), (3.3, 7.85), "output", size=WIDE)
    aside = ((0.0, 5.35), (1.65, 5.35), (1.65, 3.85))
    arrows += [
        Arrow("encoder forward norm", "decoder cross", by=aside),
        Arrow("decoder forward norm", "linear"),
        Arrow("linear", "output"),
    ]
    frames = [
        Frame(Words("encoder, n ×", "编码器，n 层"), (-1.2, 1.85), (1.2, 5.15)),
        Frame(Words("decoder, n ×", "解码器，n 层"), (2.1, 1.85), (4.5, 6.65)),
    ]
    return Diagram(boxes, arrows, frames)


def plan_seven_steps() -> Diagram:
    """Return the seven steps from a sequence to its next vector."""
    steps: list[tuple[str, Words, Point, Kind, str]] = [
        ("x", Words("$x_1 \\ldots x_{n-1}$"), (0, 0.45), "input", ""),
        ("embed", Words("1  embedding", "1  嵌入"), (1.8, 0.45), "layer", "nn.Linear"),
        ("query", Words("2  query", "2  查询"), (3.6, 0.9), "state", "nn.Linear"),
        ("key", Words("2  keys", "2  键"), (3.6, 0.0), "state", "nn.Linear"),
        ("dot", Words("3  inner products", "3  查询-键内积"), (5.4, 0.45), "attention", "Dot"),
        ("softmax", Words("4  softmax", "4  softmax 归一化"), (5.4, -1.0), "norm", "Softmax"),
        ("sum", Words("5  weighted sum", "5  加权求和"), (3.6, -1.0), "attention", "attend"),
        ("next", Words("6  model downstream", "6  下游任务模型"), (1.8, -1.0), "layer", "nn.Linear"),
        ("output", Words("$\\hat{x}_n$"), (0, -1.0), "output", ""),
        ("loss", Words("loss", "损失函数"), (0, -1.8), "norm", ""),
        ("update", Words("7  update", "7  更新参数"), (1.8, -1.8), "text", ""),
    ]
    boxes = {name: Box(words, at, kind, ours) for name, words, at, kind, ours in steps}
    pairs = ("x embed", "embed query", "embed key", "query dot", "key dot", "dot softmax", "softmax sum", "embed sum")
    return Diagram(boxes, join_boxes(*pairs, "sum next", "next output", "output loss", "loss update", "update next"))


def plan_gated_heads() -> Diagram:
    """Return one glimpse of gated heads: where to look, what passes the gate, what the memory keeps."""
    tall = (1.75, 0.64)
    boxes = {
        "x": Box(Words("input sequence x", "输入序列 x"), (0, 1.6), "input"),
        "mean": Box(Words("mean of x", "x 的平均值"), (0, 0.8), "input"),
        "last": Box(Words("last output", "前一个输出状态"), (0, 0), "state", "GatedState.output"),
        "F": Box(Words("attention matrix F", "注意力矩阵 F"), (2.3, 0.8), "attention", ".weights", WIDE),
        "gate": Box(Words("input gate (sigmoid)", "输入门（sigmoid）"), (2.3, 1.6), "norm", ".value_gate", WIDE),
        "head": Box(Words("what each\nhead found", "各注意力头的输出"), (4.6, 1.2), "attention", "GatedHeads", tall),
        "select": Box(Words("selection\nprobability", "选择概率\n（控制单元）"), (4.6, 0.0), "norm", ".gates", tall),
        "memory": Box(Words("attention pool", "注意力池"), (6.9, 1.2), "state", "GatedState.memory", WIDE),
        "update": Box(Words("update vector U", "更新向量 U"), (6.9, 0.0), "layer", "", WIDE),
        "output": Box(Words("output", "输出状态"), (8.9, 0.0), "output", ".output", (1.2, 0.42)),
    }
    pairs = ("x gate", "x F", "mean F", "last F", "gate head", "F head", "head select", "last select", "head memory")
    more = ("select memory", "memory update", "update output")
    under = ((0.0, -0.6), (6.9, -0.6))
    return Diagram(boxes, [*join_boxes(*pairs, *more), Arrow("last", "update", by=under)])
