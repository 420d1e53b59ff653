"""Draw trials at random. Every choice has a name that can be turned off."""

import random
from collections.abc import Sequence
from typing import TypeVar

from regard.algebra import catalog
from tests.fuzz.trial import Trial

Choice = TypeVar("Choice")

LEADS = [(), (1,), (2,), (3,), (2, 3), (2, 3), (1, 3), (2, 1), (2, 2, 3), (5,), (0, 2)]
LAYOUTS = ["transposed", "transposed", "sliced", "skipped", "packed", "heads", "same-rows", "same-lead", "same-width"]
LAYOUTS += ["overlapping", "moved"]
CONTENTS = ["nan", "inf", "-inf", "1e5", "1e30", "3e38", "-3e38"]
TRANSFORMS = ["plain"] * 14 + ["no_grad"] * 5 + ["inference", "vmap", "func-grad", "autocast", "second", "fake"]
METRIC = ("gaussian", "learned-gaussian", "laplacian", "learned-laplacian")  # shifting all points changes nothing
WIDE = ("bilinear", "low-rank", "concat", "additive")  # take queries and keys of two widths
HEADED = ("alibi", "relative")  # need heads
OWN_NORMALIZERS = ["Softmax(0.25)", "Sigmoid(-2.0)", "ChunkwiseMonotonic(1)", "SoftmaxPlusOne()"]
SPARSE = ["Entmax(4.0)", "Entmax(1.01)", "Entmax(20.0)", "Entmax(3.0)", "Sparsemax()"]
HARD = ("hard-monotonic",)  # decide at a threshold: rounding changes the answer at will
PAIRS = ("dot", "scaled-dot", "gaussian", "laplacian", "cosine", "features", "location", "capped", "additive")


class Dice:
    """Random choices; those whose name is in `without` are never made."""

    def __init__(self, seed: int, without: frozenset[str]) -> None:
        self.random, self.without = random.Random(seed), without

    def one(self, choices: Sequence[Choice]) -> Choice:
        """Return one of the choices that are not turned off."""
        return self.random.choice([choice for choice in choices if str(choice) not in self.without] or choices[:1])

    def happens(self, name: str, share: float) -> bool:
        """Return whether the choice `name` is made this time."""
        return self.random.random() < share and name not in self.without


def draw_trial(seed: int, without: frozenset[str] = frozenset()) -> Trial:
    """Return the trial of a seed."""
    dice = Dice(seed, without)
    trial = draw_sizes(dice, Trial(seed=seed))
    trial = draw_parts(dice, trial)
    trial = draw_numbers(dice, trial)
    return draw_circumstances(dice, trial)


def change(trial: Trial, **fields: object) -> Trial:
    """Return the trial with other fields."""
    return type(trial)(**{**vars(trial), **fields})  # type: ignore[arg-type]


def draw_sizes(dice: Dice, trial: Trial) -> Trial:
    """Draw lead axes, lengths and widths."""
    lead = dice.one([lead for lead in LEADS if 0 not in lead or dice.happens("empty", 0.3)])
    leads = [lead, lead, lead]
    if lead and dice.happens("broadcast", 0.35):
        whole = dice.random.randrange(3)
        leads = [lead if index == whole else share_axes(dice, lead) for index in range(3)]
    queries, keys = (dice.one([1, 1, 2, 3, 5, 7, 8, 9, 16, 23]) for _ in range(2))
    if dice.happens("equal-lengths", 0.2):
        queries = keys
    if dice.happens("long", 0.02):
        queries, keys = dice.one([(1, 3000), (600, 700), (1030, 1030), (1, 20000), (700, 80)])
        lead, leads = lead[:1], [part[:1] if len(part) == len(lead) else () for part in leads]
    dim, value = (dice.one([1, 2, 3, 5, 8, 16, 17]) for _ in range(2))
    if dice.happens("equal-widths", 0.4):  # kernels are then given the tensors themselves
        value = dim
    return change(trial, lead=lead, leads=tuple(leads), queries=queries, keys=keys, dim=dim, key_dim=dim, value=value)


def share_axes(dice: Dice, lead: tuple[int, ...]) -> tuple[int, ...]:
    """Return a lead that broadcasts: some axes have size one, some are missing in front."""
    own = tuple(dice.one([1, size]) for size in lead)
    return own[dice.random.randrange(len(own) + 1) :] if dice.happens("missing-axes", 0.3) else own


def draw_parts(dice: Dice, trial: Trial) -> Trial:
    """Draw score, bias, mask, normalizer and aggregate."""
    score, bias = draw_score(dice, trial), draw_bias(dice, trial)
    normalizer = draw_normalizer(dice, trial)
    if "row-total" in normalizer:  # of scores of both signs it may be next to nothing
        score, bias = dice.one(['SCORES["features"](s)', 'SCORES["features"](s) * 2.0']), "None"
    aggregate = "Soft()"
    if dice.happens("choice", 0.1) and "row-total" not in normalizer:
        aggregate = f'AGGREGATES["{dice.one([name for name in catalog.AGGREGATES if name != "soft"])}"](s)'
    return change(
        trial,
        score=score,
        bias=bias,
        mask=draw_mask(dice, trial),
        normalizer=normalizer,
        aggregate=aggregate,
        dropout=0.3 if dice.happens("dropout", 0.05) else 0.0,
    )


def draw_score(dice: Dice, trial: Trial) -> str:
    """Draw a score of the catalog, a multiple of one, or a sum of two."""
    names = [name for name in catalog.SCORES if name not in dice.without]
    score = f'SCORES["{dice.one(names)}"](s)'
    if dice.happens("sum", 0.12):
        left, right = dice.one(PAIRS), dice.one(PAIRS)
        # A score minus itself is exactly 0 by the definition and by chance, which no other order of sums can match.
        factor = dice.one([1.0, 0.5, -1.0] if left != right else [1.0, 0.5])
        score = f'SCORES["{left}"](s) + {factor} * SCORES["{right}"](s)'
    elif dice.happens("multiple", 0.08):
        score = f"{dice.one([2.0, 0.25, -1.0])} * {score}"
    elif trial.lead and dice.happens("factors", 0.06):
        score += f" * torch.tensor({draw_factors(dice, trial.lead[-1])})"
    elif dice.happens("capped", 0.04):
        score = f"Capped({score}, cap=2.0)"
    return score


def draw_factors(dice: Dice, count: int) -> list[float]:
    """Draw numbers that every dtype holds exactly."""
    return [dice.one([0.5, 0.75, 1.0, 1.5, 2.0, 3.0]) for _ in range(count)]


def draw_bias(dice: Dice, trial: Trial) -> str:
    """Draw a bias of the catalog or none; one of heads only if there are heads."""
    names = [name for name in catalog.BIASES if name != "none" and (trial.lead or name not in HEADED)]
    return f'BIASES["{dice.one(names)}"](s)' if dice.happens("bias", 0.35) else "None"


def draw_mask(dice: Dice, trial: Trial) -> str:
    """Draw a mask of the catalog, or compose some."""
    names = [name for name in catalog.MASKS if name != "full"]
    if not dice.happens("mask", 0.8):
        return "Full()"
    mask = f'MASKS["{dice.one(names)}"](s)'
    while dice.happens("composed", 0.2):
        other = f'MASKS["{dice.one(names)}"](s)'
        mask = dice.one([f"({mask} & {other})", f"({mask} | {other})", f"~{mask}"])
    return mask


def draw_normalizer(dice: Dice, trial: Trial) -> str:
    """Draw a normalizer, softmax half of the time: it has the most fast forms."""
    if dice.happens("softmax", 0.45):
        return "Softmax()"
    if dice.happens("sparse", 0.08):
        return dice.one(SPARSE)
    if dice.happens("own-normalizers", 0.1):
        return dice.one(OWN_NORMALIZERS)
    if trial.lead and dice.happens("factors", 0.08):
        settings = f"torch.tensor({draw_factors(dice, trial.lead[-1])})"
        return dice.one([f"Softmax({settings})", f"Entmax(1.0 + {settings})", f"Sigmoid({settings})"])
    return f'NORMALIZERS["{dice.one(list(catalog.NORMALIZERS))}"](s)'


def draw_numbers(dice: Dice, trial: Trial) -> Trial:
    """Draw dtype, layouts, scale and offset, unless rounding would decide the result."""
    decided = trial.aggregate != "Soft()" or any(name in trial.normalizer for name in HARD)
    dtype = "float64" if decided else dice.one(["float64", "float32", "float32", "bfloat16", "float16"])
    layouts = ["plain", "plain", "plain"]
    if dice.happens("layout", 0.4):
        some = [name for name in LAYOUTS if not (decided and name.startswith(("same", "overlap")))]
        layouts = [dice.one(some) if dice.happens("layout", 0.6) else "plain" for _ in range(3)]
    metric = any(f'SCORES["{name}"](s)' == trial.score for name in METRIC)
    scale, offset = 1.0, 0.0
    if not decided and dice.happens("scale", 0.2):
        scale = dice.one([1e-3, 0.03, 0.3, 3.0, 30.0] if metric else [1e-3, 0.03, 0.3, 2.0])
    if not decided and dice.happens("offset", 0.5 if metric else 0.05):
        offset = dice.one([10.0, 1e3, 1e4, -3e4] if metric else [3.0])
    mixed = bool(offset) and dice.happens("mixed", 0.5)
    layouts = [
        name if name != "same-lead" or lead else "plain" for name, lead in zip(layouts, trial.leads, strict=True)
    ]
    wide = any(f'SCORES["{name}"](s)' == trial.score for name in WIDE) and dice.happens("two-widths", 0.3)
    return change(
        trial, dtype=dtype, layouts=tuple(layouts), scale=scale, offset=offset, mixed=mixed,
        key_dim=trial.dim + 2 if wide else trial.dim,
    )  # fmt: skip


def draw_circumstances(dice: Dice, trial: Trial) -> Trial:
    """Draw hidden content, the transform, and whether blocks are small."""
    hidden, column = "", -1
    if trial.mask != "Full()" and 0 not in trial.lead and dice.happens("hidden", 0.3):
        hidden = dice.one(CONTENTS)
        column = dice.random.randrange(trial.keys) if dice.happens("exposed", 0.5) else -1
    transform = dice.one(TRANSFORMS)
    if dice.happens("compile", 0.002):
        transform = "compile"
    if transform in ("vmap", "func-grad", "second", "autocast", "compile") and (
        trial.aggregate != "Soft()" or trial.dropout
    ):
        transform = "plain"
    if transform == "autocast":
        trial = change(trial, dtype="float32")
    if transform in ("second", "func-grad"):
        trial = change(trial, dtype="float64")
    small = trial.queries > 2 and trial.queries * trial.keys < 2000 and dice.happens("blocks", 0.15)
    if hidden and transform not in ("plain", "no_grad", "inference", "compile"):
        hidden, column = "", -1
    return change(
        trial, hidden=hidden, column=column, where=dice.one(["both", "key", "value"]) if hidden else "both",
        transform=transform, small_blocks=small,
    )  # fmt: skip
