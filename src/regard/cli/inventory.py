"""Layers, encoders, decoders, searches, presets and tasks: the catalog beside the parts of attention.

An entry says where the thing is, what it is in Chinese, and by which other names it goes. What it is in English is its
docstring.
"""

from collections.abc import Mapping
from typing import NamedTuple


class InventoryEntry(NamedTuple):
    """Where a thing is (`module:name`), one line of Chinese, and other names for it, separated by blanks."""

    target: str
    chinese: str
    aliases: str = ""


def _list_layers(module: str, entries: Mapping[str, tuple[str, str, str]]) -> dict[str, InventoryEntry]:
    return {
        name: InventoryEntry(f"{module}:{target}", chinese, aliases)
        for name, (target, chinese, aliases) in entries.items()
    }


LAYERS = _list_layers(
    "regard.layers",
    {
        "attention": (
            "Attention",
            "多头注意力：投影到多个头，任意评分、偏置、归一化与聚合；自注意力、交叉注意力与键值缓存。",
            "multi-head multihead multi-head-attention 注意力层 多头注意力 多头 自注意力 交叉注意力 键值注意力",
        ),
        "mechanism": ("Mechanism", "机制：评分、偏置、归一化与聚合合为一件，掩码随调用给出。", "机制"),
        "memory": ("Memory", "键值缓存：投影好的键和值，以及哪些不是填充。", "kv-cache key-value-cache 键值缓存 缓存"),
        "pooling": ("Pooling", "注意力汇聚：可学习的查询看整个序列。", "attention-pooling 注意力汇聚 注意力池化"),
        "attention-flow": (
            "AttentionFlow",
            "双向注意力流（BiDAF）：上下文与问题互相看。",
            "bidaf 双向注意力 双向注意力流",
        ),
        "co-attention": ("CoAttention", "协同注意力：两个序列各自为对方的位置加权。", "coattention 协同注意力"),
        "trilinear": ("Trilinear", "三线性评分：查询、键及其乘积的每个坐标各有一个权重。", "三线性"),
        "gated-heads": ("GatedHeads", "门控头：各头多次扫视，由门决定记住什么。", "gated-attention 门控头 门控注意力"),
        "gated-state": ("GatedState", "一次扫视之后的状态：各头记住的内容与目前的输出。", ""),
        "hops": ("Hops", "多跳：在外部记忆上反复查询。", "memory-network multi-hop 多跳 多跳注意力 外部记忆"),
        "local-attention": (
            "LocalAttention",
            "局部注意力 local-p：在预测的中心附近按高斯加权。",
            "luong-local 局部注意力 预测性局部注意力",
        ),
        "center": ("Center", "由查询预测注意力的中心。", ""),
        "monotonic-window": ("monotonic_window", "局部注意力 local-m 的掩码：第 t 步只看 t 前后 D 个键。", "local-m"),
        "coverage": ("Coverage", "覆盖：把每个键已得到的注意力加到键上。", "覆盖机制"),
        "location-features": (
            "LocationFeatures",
            "位置特征：沿键的方向对上一步的权重做卷积，加到键上（Chorowski）。",
            "location-aware 位置敏感注意力",
        ),
        "initial-weights": ("build_initial_weights", "第一步之前的权重：全零。", ""),
        "coverage-loss": ("coverage_loss", "覆盖损失：每一步有多少注意力给了已被看过的键。", ""),
        "encoder-block": (
            "EncoderBlock",
            "编码器块：自注意力与逐位前馈网络，各带残差连接与层规范化。",
            "transformer-encoder-block 编码器块",
        ),
        "decoder-block": (
            "DecoderBlock",
            "解码器块：因果自注意力、对源序列的交叉注意力与逐位前馈网络。",
            "transformer-decoder-block 解码器块",
        ),
        "decoder-block-state": ("DecoderBlockState", "解码器块的状态：已有词元与源序列的键值缓存。", ""),
        "feed-forward": ("FeedForward", "逐位前馈网络：每个位置经过同一个小网络。", "ffn 逐位前馈网络 前馈网络"),
        "residual": ("Residual", "残差连接与它的层规范化，围绕一个部件。", "残差连接"),
        "pre-norm": ("PreNorm", "前置层规范化：先规范化，再计算，再相加。", "前置规范化"),
        "post-norm": ("PostNorm", "后置层规范化：先相加，再规范化，如原始 Transformer。", "后置规范化"),
        "sinusoidal": (
            "Sinusoidal",
            "正弦位置编码：加上不同频率的正弦与余弦。",
            "position-encoding positional-encoding 位置编码 正弦位置编码",
        ),
        "sinusoids": ("sinusoids", "各位置的正弦编码向量，float64。", ""),
        "rotation": ("rotation", "把每个位置移动 δ 的旋转矩阵。", "旋转恒等式"),
        "learned-positions": ("LearnedPositions", "可学习的位置编码：每个位置一个训练出的向量。", "可学习位置编码"),
        "rotary": ("Rotary", "旋转位置编码：按位置旋转查询与键，内积只取决于距离。", "rope 旋转位置编码"),
        "frequency-scaling": ("FrequencyScaling", "旋转频率的缩放：文本比训练时更长时用。", "rope-scaling 频率缩放"),
        "linear-scaling": ("LinearScaling", "线性缩放：位置除以一个数。", "position-interpolation"),
        "ntk-scaling": ("NtkScaling", "NTK 缩放：慢的频率变慢，快的频率保持。", "ntk"),
        "dynamic-ntk-scaling": ("DynamicNtkScaling", "动态 NTK 缩放：按文本长度决定缩放多少。", "dynamic-ntk"),
        "yarn-scaling": ("YarnScaling", "YaRN：转得快的频率保持，转得慢的除以一个数。", "yarn"),
        "llama3-scaling": ("Llama3Scaling", "Llama 3.1 的缩放：只缩放转得慢的频率。", "llama3"),
        "projections": ("Projections", "投影：查询、键、值与输出各用任意模块，或不用。", ""),
        "packed-projections": ("PackedProjections", "合并的投影：查询、键、值的矩阵合为一个，自注意力只乘一次。", ""),
        "head-projections": ("HeadProjections", "投影的接口：从序列到各头，再从各头到序列。", ""),
    },
)

ENCODERS = {
    "recurrent": InventoryEntry(
        "regard.models.encoders.recurrent:RecurrentEncoder", "循环编码器：单向或双向的 GRU 或 LSTM。", "rnn 循环编码器"
    ),
    "transformer": InventoryEntry(
        "regard.models.encoders.transformer:TransformerEncoder",
        "Transformer 编码器：自注意力与逐位前馈网络的若干块。",
        "transformer-encoder transformer编码器",
    ),
    "convolutional": InventoryEntry(
        "regard.models.encoders.convolutional:ConvolutionalEncoder", "卷积编码器：带门和残差的卷积。", "cnn 卷积编码器"
    ),
    "pyramidal": InventoryEntry(
        "regard.models.encoders.pyramidal:PyramidalEncoder",
        "金字塔编码器（听者）：每层的位置数减半，用于语音。",
        "listener las 金字塔编码器",
    ),
    "grid": InventoryEntry(
        "regard.models.encoders.grid:GridEncoder", "图像编码器：网格的每个区域是源的一个位置。", "图像编码器"
    ),
}

DECODERS = {
    "bahdanau": InventoryEntry(
        "regard.models.decoders.recurrent:BahdanauDecoder",
        "Bahdanau 解码器：先用上一状态作查询看源句，再走一步。",
        "bahdanau-decoder",
    ),
    "luong": InventoryEntry(
        "regard.models.decoders.recurrent:LuongDecoder", "Luong 解码器：先走一步，再用新状态看源句。", "luong-decoder"
    ),
    "luong-feeding": InventoryEntry(
        "regard.models.decoders.recurrent:InputFeedingDecoder",
        "输入反馈的 Luong 解码器：注意力向量是下一步输入的一部分。",
        "input-feeding 输入反馈",
    ),
    "plain": InventoryEntry(
        "regard.models.decoders.decoder_attention:FixedContext",
        "没有注意力的解码器：每一步都用同一个上下文向量（Seq2Seq）。",
        "seq2seq rnn-plain 上下文向量",
    ),
    "transformer": InventoryEntry(
        "regard.models.decoders.transformer:TransformerDecoder",
        "Transformer 解码器：因果自注意力、交叉注意力与逐位前馈网络的若干块。",
        "transformer-decoder transformer解码器",
    ),
    "convolutional": InventoryEntry(
        "regard.models.decoders.convolutional:ConvolutionalDecoder",
        "卷积解码器：对已有词元做卷积，每层再看源句。",
        "卷积解码器",
    ),
}

SEARCHES = {
    "greedy": InventoryEntry("regard.models.search:greedy_search", "贪心搜索：每一步取最好的词元。", "贪心搜索 贪心"),
    "beam": InventoryEntry(
        "regard.models.search:beam_search", "束搜索：每一步保留最好的若干个假设。", "beam-search 束搜索"
    ),
    "sampling": InventoryEntry("regard.models.search:sample", "采样：按概率抽取词元，可调温度。", "采样"),
}

PRESETS = {
    "bahdanau": InventoryEntry(
        "regard.models.config:PRESETS", "Bahdanau 的翻译模型：双向 GRU 编码器与加性注意力。", ""
    ),
    "luong": InventoryEntry("regard.models.config:PRESETS", "Luong 的翻译模型：LSTM 与双线性（general）评分。", ""),
    "luong-feeding": InventoryEntry("regard.models.config:PRESETS", "带输入反馈的 Luong 模型。", ""),
    "rnn-plain": InventoryEntry("regard.models.config:PRESETS", "没有注意力的 Seq2Seq，用作对照。", ""),
    "transformer-tiny": InventoryEntry(
        "regard.models.config:PRESETS", "小 Transformer：四层，宽 128，适合小语料。", "transformer"
    ),
    "transformer-base": InventoryEntry(
        "regard.models.config:PRESETS", "原论文大小的 Transformer：六层，宽 512。", "transformer"
    ),
    "conv-tiny": InventoryEntry("regard.models.config:PRESETS", "小的卷积编码器–解码器。", ""),
}

TASKS = {
    "translation": ("机器翻译：从文本，或从自带的数据。", "机器翻译 翻译 nmt"),
    "regression": ("核回归：从数据点学一条曲线，即看近处的加权平均。", "核回归 nadaraya-watson-regression"),
    "speech": ("语音识别：写下说了什么。", "语音识别 语音 asr"),
    "reading": ("阅读理解：在文章里找到问题的答案。", "阅读理解"),
    "digits": ("手写数字：几次扫视之内认出数字。", "手写数字"),
    "inversion": ("序列逆序、复制与排序。", "逆序"),
    "next-vector": ("七步预测序列的下一个向量。", "下一个向量"),
    "captioning": ("看图说话：图里有什么，说每个词时看哪里。", "看图说话 图像描述 image-captioning"),
    "vqa": ("视觉问答：回答关于图像的问题，看的是哪个区域。", "视觉问答 visual-question-answering"),
    "memory": ("故事问答：在事实之间多跳。", "故事问答 babi"),
}

FAMILIES: Mapping[str, Mapping[str, InventoryEntry]] = {
    "layer": LAYERS,
    "encoder": ENCODERS,
    "decoder": DECODERS,
    "search": SEARCHES,
    "preset": PRESETS,
    "task": {name: InventoryEntry("regard.tasks:TASKS", *words) for name, words in TASKS.items()},
}
