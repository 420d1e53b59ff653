"""The configuration of a model that rewrites sequences."""

from dataclasses import dataclass, field
from typing import Literal

from regard.errors import wrong
from regard.models.config import AttentionConfig, ModelConfig, RecurrentConfig, check_positive
from regard.training import StopCriteria, Training, configure_short_training
from regard.training.settings import check_not_negative

Rule = Literal["invert", "copy", "sort"]
RULES: tuple[Rule, ...] = ("invert", "copy", "sort")


@dataclass(frozen=True, slots=True)
class InversionData:
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
            check_positive(name, getattr(self, name))
        check_not_negative("seed", self.seed)


@dataclass(frozen=True, slots=True)
class InversionConfig:
    """The configuration of a model that rewrites sequences."""

    task: Literal["inversion"] = "inversion"
    data: InversionData = field(default_factory=InversionData)
    model: ModelConfig = field(
        default_factory=lambda: configure_small_model(
            "bahdanau", AttentionConfig(score="additive", hidden=48), RecurrentConfig(hidden=48)
        )
    )
    batch: int = 64
    training: Training = field(
        default_factory=lambda: configure_short_training(
            "inversion", rate=6e-3, warmup=50, stop=StopCriteria(epochs=20)
        )
    )

    def __post_init__(self) -> None:
        check_positive("batch", self.batch)


def configure_small_model(
    decoder: Literal["bahdanau", "luong", "plain"], reading: AttentionConfig, recurrent: RecurrentConfig
) -> ModelConfig:
    """Return a model small enough to learn this in a minute or two."""
    return ModelConfig(
        encoder="recurrent", decoder=decoder, size=24, dropout=0.0, tied="none", recurrent=recurrent, attention=reading
    )


PRESETS = {
    "bahdanau": InversionConfig(),
    "luong": InversionConfig(
        model=configure_small_model(
            "luong", AttentionConfig(score="bilinear", hidden=48), RecurrentConfig(cell="lstm", hidden=48)
        )
    ),
    "no-attention": InversionConfig(
        model=configure_small_model("plain", AttentionConfig(hidden=48), RecurrentConfig(hidden=64))
    ),
}
