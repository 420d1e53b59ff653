"""What the diagrams of sequences consist of: a box for each word or state, and which reach which."""

from regard.inspect.draw.diagram import Arrow, Box, Diagram, Frame, Kind, Words, join_boxes

SOURCE = ("I", "am", "a", "student")
STEP = 1.05  # inches from one word to the next


def plan_row(names: str, words: list[Words], y: float, kind: Kind) -> dict[str, Box]:
    """Return boxes side by side, called `names` and a number from 0."""
    boxes = (Box(each, (STEP * place, y), kind, size=(0.78, 0.36)) for place, each in enumerate(words))
    return {f"{names}{place}": box for place, box in enumerate(boxes)}


def list_letters(letter: str, count: int) -> list[Words]:
    """Return a letter with numbers from 1."""
    return [Words(f"${letter}_{number}$") for number in range(1, count + 1)]


def join_rows(first: str, second: str, count: int) -> list[Arrow]:
    """Return arrows from each box of a row to the one above it."""
    return [Arrow(f"{first}{place}", f"{second}{place}") for place in range(count)]


def chain_row(name: str, count: int) -> list[Arrow]:
    """Return arrows from each box of a row to its right neighbor."""
    return [Arrow(f"{name}{place}", f"{name}{place + 1}") for place in range(count - 1)]


def plan_encoder(letter: str) -> tuple[dict[str, Box], list[Arrow]]:
    """Return the source and the states of an encoder above it."""
    count = len(SOURCE)
    boxes = plan_row("x", [Words(word) for word in SOURCE], 0.0, "input")
    boxes |= plan_row("h", list_letters(letter, count), 0.7, "layer")
    return boxes, [*join_rows("x", "h", count), *chain_row("h", count)]


def plan_seq2seq() -> Diagram:
    """Return an encoder that leaves one vector, which every step of the decoder gets."""
    boxes, arrows = plan_encoder("h")
    boxes |= plan_row("s", list_letters("s", 4), 2.5, "state")
    boxes |= plan_row("y", list_letters("y", 4), 3.2, "output")
    boxes["c"] = Box(Words("context vector c", "语义向量 c"), (1.5 * STEP, 1.6), "attention", size=(1.6, 0.36))
    boxes["encoder"] = Box(Words("encoder", "编码器"), (-1.0, 0.7), "text", size=(0.8, 0.3))
    boxes["decoder"] = Box(Words("decoder", "解码器"), (-1.0, 2.5), "text", size=(0.8, 0.3))
    arrows += [Arrow("h3", "c", "up first"), *chain_row("s", 4), *join_rows("s", "y", 4)]
    arrows += [Arrow("c", f"s{place}") for place in range(4)]
    arrows += [Arrow(f"y{place}", f"s{place + 1}") for place in range(3)]
    return Diagram(boxes, arrows)


def plan_bahdanau() -> Diagram:
    """Return one step of Bahdanau's decoder: the last state asks the encoder, and the answer goes into the step."""
    boxes, arrows = plan_encoder("h")
    arrows += [Arrow(f"h{place + 1}", f"h{place}") for place in range(3)]  # it reads in both directions
    middle = 1.5 * STEP
    boxes |= {
        "attend": Box(Words("attention pooling", "注意力汇聚"), (middle, 1.7), "attention", "Additive"),
        "c": Box(Words("$c_t$"), (middle + 2.2, 1.7), "attention", ".output", (0.9, 0.42)),
        "last": Box(Words("$s_{t-1}$"), (middle, 2.7), "state", size=(0.9, 0.36)),
        "state": Box(Words("$s_t$"), (middle + 2.2, 2.7), "state", size=(0.9, 0.36)),
        "y": Box(Words("$y_{t-1}$"), (middle + 3.7, 2.7), "input", size=(0.9, 0.36)),
        "output": Box(Words("$y_t$"), (middle + 2.2, 3.4), "output", size=(0.9, 0.36)),
        "asks": Box(Words("query", "查询"), (middle - 0.4, 2.22), "text", size=(0.6, 0.24)),
        "read": Box(Words("keys and\nvalues", "键和值"), (-0.35, 1.35), "text", size=(0.9, 0.4)),
        "context": Box(Words("context", "上下文\n变量"), (middle + 2.75, 2.2), "text", size=(0.6, 0.3)),
        "encoder": Box(Words("encoder", "编码器"), (-1.0, 0.7), "text", size=(0.8, 0.3)),
        "decoder": Box(Words("decoder", "解码器"), (-1.0, 2.7), "text", size=(0.8, 0.3)),
    }
    arrows += [Arrow(f"h{place}", "attend") for place in range(4)]
    pairs = ("last attend", "attend c", "c state", "last state", "y state", "state output")
    return Diagram(boxes, [*arrows, *join_boxes(*pairs)])


def plan_luong() -> Diagram:
    """Return one step of Luong's decoder: the new state asks, and is joined with the answer."""
    boxes, arrows = plan_encoder("h")
    boxes |= plan_row("top", list_letters("\\bar{h}", 4), 1.4, "layer")
    arrows += [*join_rows("h", "top", 4), *chain_row("top", 4)]
    middle, right = 1.5 * STEP, 4.5 * STEP
    boxes |= {
        "start": Box(Words("<s>"), (right, 0.0), "input", size=(0.78, 0.36)),
        "low": Box(Words("$s_t$"), (right, 0.7), "state", size=(0.78, 0.36)),
        "state": Box(Words("$h_t$"), (right, 1.4), "state", size=(0.78, 0.36)),
        "weights": Box(Words("attention weights", "注意力权重"), (middle, 2.35), "attention", "Bilinear"),
        "context": Box(Words("context vector", "上下文向量"), (middle, 3.15), "attention", ".output"),
        "joined": Box(Words("attention vector", "注意力向量"), (right, 3.15), "state", "tanh(W [c; h])"),
        "output": Box(Words("word", "词"), (right, 3.95), "output", size=(1.0, 0.36)),
        "encoder": Box(Words("encoder\n(two layers)", "编码器\n（两层）"), (-1.05, 1.05), "text", size=(1.0, 0.4)),
        "decoder": Box(
            Words("decoder\n(two layers)", "解码器\n（两层）"), (right + 1.0, 1.05), "text", size=(0.8, 0.4)
        ),
    }
    arrows += [Arrow(f"top{place}", "weights") for place in range(4)]
    arrows += [Arrow("h3", "low"), Arrow("top3", "state"), Arrow("state", "weights", "up first")]
    pairs = ("start low", "low state", "weights context", "context joined", "state joined", "joined output")
    return Diagram(boxes, [*arrows, *join_boxes(*pairs)])


def plan_self_attention() -> Diagram:
    """Return a sequence whose every output is made from all inputs."""
    count = 4
    boxes = plan_row("x", list_letters("x", count), 0.0, "input")
    boxes |= plan_row("y", list_letters("y", count), 1.6, "output")
    arrows = [Arrow(f"x{source}", f"y{target}") for target in range(count) for source in range(count)]
    return Diagram(boxes, arrows)


def plan_layers() -> Diagram:
    """Return a convolution of width 3, a recurrence and self-attention side by side."""
    count = 5
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for place, (kind, words) in enumerate(
        (
            ("convolution", Words("convolution (CNN)", "卷积（CNN）")),
            ("recurrence", Words("recurrence (RNN)", "循环（RNN）")),
            ("attention", Words("self-attention", "自注意力")),
        )
    ):
        left = place * 3.6
        for number in range(count):
            x = left + 0.62 * number
            size = (0.42, 0.36)
            boxes[f"{kind} x{number}"] = Box(Words(f"$x_{number + 1}$"), (x, 0.0), "input", size=size)
            boxes[f"{kind} y{number}"] = Box(Words(f"$y_{number + 1}$"), (x, 1.2), "output", size=size)
            sources = {
                "convolution": range(max(0, number - 1), min(count, number + 2)),
                "recurrence": range(number, number + 1),
                "attention": range(count),
            }[kind]
            arrows += [Arrow(f"{kind} x{source}", f"{kind} y{number}") for source in sources]
        boxes[kind] = Box(words, (left + 1.24, 1.65), "text", size=(1.5, 0.3))
    return Diagram(boxes, [*arrows, *chain_row("recurrence y", count)])


def plan_flow() -> Diagram:
    """Return attention in both directions between a passage and a question."""
    boxes = {
        "passage": Box(Words("passage", "文章"), (0, 1.1), "input"),
        "question": Box(Words("question", "问题"), (0, 0), "input"),
        "table": Box(
            Words("similarity of all pairs", "两两相似度"), (2.3, 0.55), "attention", "Trilinear", (1.75, 0.42)
        ),
        "forth": Box(
            Words("passage → question", "文章 → 问题"), (4.6, 1.1), "attention", "AttentionFlow", (1.75, 0.42)
        ),
        "back": Box(Words("question → passage", "问题 → 文章"), (4.6, 0), "attention", "AttentionFlow", (1.75, 0.42)),
        "joined": Box(
            Words("passage that knows\nthe question", "带着问题的文章表示"), (6.9, 0.55), "state", "", (1.75, 0.5)
        ),
        "output": Box(Words("first and last\nword", "答案的首尾"), (8.9, 0.55), "output", "", (1.3, 0.5)),
    }
    pairs = ("passage table", "question table", "table forth", "table back", "forth joined", "back joined")
    return Diagram(boxes, [*join_boxes(*pairs), Arrow("joined", "output")])


def plan_memory() -> Diagram:
    """Return the hops of a memory network: each asks the memory with what the last one found."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for hop in range(3):
        x = 1.9 + 1.9 * hop
        boxes[f"hop{hop}"] = Box(
            Words(("first hop", "second hop", "third hop")[hop], ("第一跳", "第二跳", "第三跳")[hop]),
            (x, 0),
            "attention",
            "attend",
            (1.25, 0.42),
        )
        arrows.append(Arrow("memory", f"hop{hop}"))
    boxes |= {
        "question": Box(Words("question", "问题"), (0, 0), "state", size=(1.2, 0.42)),
        "memory": Box(
            Words("external memory: keys and values", "外部记忆：键和值"), (3.8, 1.2), "input", "Memory", (2.6, 0.42)
        ),
        "answer": Box(Words("answer", "答案"), (7.6, 0), "output", size=(1.2, 0.42)),
    }
    arrows += [Arrow("question", "hop0"), *chain_row("hop", 3), Arrow("hop2", "answer")]
    return Diagram(boxes, arrows, [Frame(Words("Hops"), (1.05, -0.35), (6.55, 0.62))])
