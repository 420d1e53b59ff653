"""The comparisons that `regard compare` knows by name."""

from collections.abc import Mapping

from regard.tasks.comparison import Claim, Comparison, Variant
from regard.tasks.comparison_measures import (
    ASKED,
    RULES,
    measure_agreement,
    measure_depths,
    measure_lengths,
    measure_memory,
    measure_next_vector,
    measure_retrieval,
    measure_sharpness,
    show_seven_steps,
)

LEARNED = {"training.stop.epochs": "20", "training.stop.target": "none"}  # enough for all that can learn it
GRU = LEARNED | {"model.recurrent.cell": "gru"}
LOCAL = GRU | {"model.attention.radius": "2"}
TRANSFORMER = LEARNED | {
    "training.stop.epochs": "40",
    "model.encoder": "transformer",
    "model.decoder": "transformer",
    "model.size": "48",
    "model.transformer.layers": "1",
    "model.transformer.decoder_layers": "1",
    "model.transformer.hidden": "96",
}
LENGTHS = ("lengths 2 to 10", "lengths 11 to 16")  # those that were trained on, and longer ones
LONG = {"data.longest": "20"}  # too much for one vector of 64 numbers
SCORES = ("dot", "scaled-dot", "bilinear", "additive", "concat", "cosine", "gaussian", "location")
SETS = (
    *(f"width {width}, 400 updates" for width in (16, 64, 512)),
    *(f"{keys} keys, 3000 updates" for keys in (16, 32, 64)),
)
ITEMS = (16, 64, 256, 1024)
SHARPNESS = ("right", "weight at the right item", "share of the greatest entropy")
BATCHES = MIXED, ALIKE = ("trained on mixed batches", "trained on batches of one length")
BOUNDED, LEARNT = "scores within ±5", "learned scores"


COMPARISONS: Mapping[str, Comparison] = {
    "length": Comparison(
        "inversion",
        "invert",
        ("lengths 2 to 20", "lengths 21 to 31", "length 40"),
        "exact",
        [
            Variant("no attention", "no-attention", GRU | LONG),
            Variant("Bahdanau", "bahdanau", GRU | LONG),
            Variant("Luong, dot", "luong", GRU | LONG | {"model.attention.score": "dot"}),
            Variant("Luong, general", "luong", GRU | LONG),
            Variant("Luong, concat", "luong", GRU | LONG | {"model.attention.score": "concat"}),
            Variant("Transformer", None, TRANSFORMER | LONG),
        ],
        claims=[
            Claim(
                "Luong, general; lengths 2 to 20",
                "no attention; lengths 2 to 20",
                "One vector cannot hold a long sequence.",
            ),
            Claim(
                "Bahdanau; lengths 21 to 31",
                "Transformer; lengths 21 to 31",
                "Beyond the trained lengths a recurrence goes on for a while; absolute positions are new at once.",
            ),
        ],
    ),
    "scores": Comparison(
        "retrieval",
        "from noise",
        SETS,
        "% right",
        [Variant(name, name, {}) for name in SCORES],
        measure_retrieval,
        claims=[
            Claim(
                "scaled-dot; width 512, 400 updates",
                "dot; width 512, 400 updates",
                "Without the division by √d, learning from wide vectors is slower here; why, this comparison does not "
                "measure.",
            ),
            Claim(
                "location; 16 keys, 3000 updates",
                "location; 32 keys, 3000 updates",
                "Location has no score for positions that it was not trained on (4 to 16 keys); the content of keys is "
                "the same everywhere.",
            ),
        ],
    ),
    "normalizers": Comparison(
        "retrieval",
        "of one item, trained on 4 to 16 items",
        [f"{quantity}, {items} items" for quantity in SHARPNESS for items in ITEMS],
        "%",
        [
            Variant(f"{normalizer}, {words}", f"{score} {normalizer}", {})
            for score, words in (("bounded", BOUNDED), ("learned", LEARNT))
            for normalizer in ("softmax", "entmax", "sparsemax")
        ],
        measure_sharpness,
        claims=[
            Claim(
                f"softmax, {BOUNDED}; right, 16 items",
                f"softmax, {BOUNDED}; right, 1024 items",
                "A softmax of bounded scores gives each item some weight, so that many items together outweigh one.",
            ),
            Claim(
                f"sparsemax, {BOUNDED}; right, 1024 items",
                f"softmax, {BOUNDED}; right, 1024 items",
                "An item whose score is far enough below the best has a weight of 0, however many there are.",
            ),
            Claim(
                f"softmax, {LEARNT}; right, 1024 items",
                f"softmax, {BOUNDED}; right, 1024 items",
                "If scores may grow in training, softmax is sharp enough for this many.",
            ),
        ],
        curves=dict.fromkeys(SHARPNESS, ITEMS),
        axis="items",
    ),
    "norms": Comparison(
        "sequences said backwards,",
        "300 updates without a warm-up",
        ("1 block", "4 blocks", "12 blocks"),
        "% of letters right",
        [Variant("norm first", "pre-norm", {}), Variant("norm last", "post-norm", {})],
        measure_depths,
        claims=[
            Claim(
                "norm first; 12 blocks",
                "norm last; 12 blocks",
                "A deep stack with the norm last does not learn at this rate from the start.",
            )
        ],
    ),
    "norms-lengths": Comparison(
        "sequences of 2 to 24 letters said backwards,",
        "1500 updates",
        [f"{batches}: {own}" for batches in BATCHES for own in ("lengths 2 to 24", "length 12")],
        "% of letters right",
        [
            Variant("layer norm", "layer", {}),
            Variant("batch norm", "batch running", {}),
            Variant("batch norm, statistics of the tested batch", "batch own", {}),
        ],
        measure_lengths,
        claims=[
            Claim(
                f"layer norm; {MIXED}: lengths 2 to 24",
                f"batch norm; {MIXED}: lengths 2 to 24",
                "Padding is part of the batch's statistics, and of no sequence's own.",
            ),
            Claim(
                f"layer norm; {ALIKE}: lengths 2 to 24",
                f"batch norm; {ALIKE}: lengths 2 to 24",
                "The averages over training are the statistics of no length.",
            ),
            Claim(
                f"batch norm; {MIXED}: length 12",
                f"batch norm, statistics of the tested batch; {MIXED}: length 12",
                "What is said of a sequence depends on what else is in its batch.",
            ),
        ],
    ),
    "next-vector": Comparison(
        "next vector",
        "by three rules",
        RULES,
        "squared error",
        [
            Variant("the last vector again", "last value", {}),
            Variant("the mean of all vectors", "mean", {}),
            Variant("the mean, then V: no attention", "plain, no attention", {}),
            Variant("seven steps: no embedding, gradient descent", "plain", {}),
            Variant("the task: embedding, positions, Adam", "task", {}),
        ],
        measure_next_vector,
        claims=[
            Claim(
                "the mean, then V: no attention; retrieval",
                "seven steps: no embedding, gradient descent; retrieval",
                "The seven steps find the vector under the same name; a mean cannot.",
            ),
            Claim(
                "seven steps: no embedding, gradient descent; linear",
                "the task: embedding, positions, Adam; linear",
                "With embedding and positions the error is nearer to that of the noise.",
            ),
        ],
        note="Noise alone makes an error of 0.01.",
        example=show_seven_steps,
    ),
    "memory": Comparison(
        "memory",
        "of 20 kinds of questions, 1,000 stories each",
        ("mean", *ASKED),
        "% errors",
        [
            Variant("three hops", "model.hops=3", {}),
            Variant("one hop", "model.hops=1", {}),
            Variant("bag of words", "model.positions=none", {}),
            Variant("without time", "model.time=false", {}),
            Variant("gated writing", "model.writing=gated", {}),
            Variant("MemN2N on bAbI, 1k: PE", "published, 1k: PE", {}),
        ],
        measure_memory,
        claims=[
            Claim("one hop; mean", "three hops; mean", "Questions that need several facts need several hops."),
            Claim("bag of words; mean", "three hops; mean", "The order of words says who does what."),
            Claim("without time; mean", "three hops; mean", "Only time tells the last of several places."),
        ],
        note="Published errors (Sukhbaatar et al. 2015) are of other stories of the same kinds.",
    ),
    "bahdanau-luong": Comparison(
        "inversion",
        "copy",
        LENGTHS,
        "exact",
        [
            Variant("Bahdanau: additive, before the cell", "bahdanau", GRU),
            Variant(
                "Luong: general, after the cell, input feeding", "luong", GRU | {"model.attention.feeding": "true"}
            ),
            Variant("Luong: general, after the cell", "luong", GRU),
        ],
        claims=[
            Claim(
                "Bahdanau: additive, before the cell; lengths 11 to 16",
                "Luong: general, after the cell; lengths 11 to 16",
                "A cell that takes the context as an input goes on beyond the trained lengths.",
            )
        ],
        note="Trained lengths do not tell them apart.",
    ),
    "global-local": Comparison(
        "inversion",
        "copy",
        LENGTHS,
        "exact",
        [
            Variant("global", "luong", GRU),
            Variant("local-m (monotonic)", "luong", LOCAL | {"model.attention.scope": "local-m"}),
            Variant("local-p (predicted)", "luong", LOCAL | {"model.attention.scope": "local-p"}),
        ],
        claims=[
            Claim(
                "local-m (monotonic); lengths 11 to 16",
                "global; lengths 11 to 16",
                "Source and target have one order: local-m need not learn where to look.",
            )
        ],
    ),
    "global-local-inverted": Comparison(
        "inversion",
        "invert",
        ["lengths 2 to 20"],
        "exact",
        [
            Variant("global", "luong", GRU | LONG),
            Variant("local-m (monotonic)", "luong", LOCAL | LONG | {"model.attention.scope": "local-m"}),
            Variant("local-p (predicted)", "luong", LOCAL | LONG | {"model.attention.scope": "local-p"}),
        ],
        note="The order is reversed: what local-m looks at is not what it needs.",
    ),
    "soft-hard": Comparison(
        "captioning",
        "scenes",
        ["the first words of two scenes"],
        "cosine between the gradient of the attention and that of the exact expectation",
        [
            Variant("hard, REINFORCE", "reinforce", {}),
            Variant("hard, Gumbel", "gumbel", {}),
            Variant("hard, Gumbel and straight-through", "gumbel-straight", {}),
            Variant("hard, best and straight-through", "straight-through", {}),
            Variant("soft", "soft", {}),
        ],
        measure_agreement,
    ),
}
