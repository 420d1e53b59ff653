"""What a model that rewrites sequences is told."""

from dataclasses import dataclass, field
from typing import Literal

from regard.errors import wrong
from regard.models.config import ModelConfig, Reading, Recurrent, positive
from regard.training import Stop, Training, brief
from regard.training.settings import not_negative

Rule = Literal["invert", "copy", "sort"]
RULES: tuple[Rule, ...] = ("invert", "copy", "sort")


@dataclass(frozen=True, slots=True)
class Data:
    """Sequences of letters, drawn anew for each epoch; those held out are never among them."""

    rule: Rule = "invert"
    symbols: int = 10  # letters of the alphabet
    shortest: int = 2
    longest: int = 10
    items: int = 6400  # sequences in an epoch
    held_out: int = 500  # sequences of each set that is tested on, at most
    seed: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.symbols <= 26:
            raise wrong("symbols", self.symbols, "2 to 26 letters", "use 10")
        if not 1 <= self.shortest <= self.longest:
            raise wrong("shortest", self.shortest, f"1 to longest={self.longest}", "use 2")
        for name in ("items", "held_out"):
            positive(name, getattr(self, name))
        not_negative("seed", self.seed)


@dataclass(frozen=True, slots=True)
class InversionConfig:
    """A model that rewrites sequences, whole."""

    task: Literal["inversion"] = "inversion"
    data: Data = field(default_factory=Data)
    model: ModelConfig = field(
        default_factory=lambda: small("bahdanau", Reading(score="additive", hidden=48), Recurrent(hidden=48))
    )
    batch: int = 64
    training: Training = field(default_factory=lambda: brief("inversion", rate=6e-3, warmup=50, stop=Stop(epochs=20)))

    def __post_init__(self) -> None:
        positive("batch", self.batch)


def small(decoder: Literal["bahdanau", "luong", "plain"], reading: Reading, recurrent: Recurrent) -> ModelConfig:
    """A model small enough to learn this in a minute or two."""
    return ModelConfig(
        encoder="recurrent", decoder=decoder, size=24, dropout=0.0, tied="none", recurrent=recurrent, reading=reading
    )


PRESETS = {
    "bahdanau": InversionConfig(),
    "luong": InversionConfig(
        model=small("luong", Reading(score="bilinear", hidden=48), Recurrent(cell="lstm", hidden=48))
    ),
    "no-attention": InversionConfig(model=small("plain", Reading(hidden=48), Recurrent(hidden=64))),
}
