"""The configuration of a model that rewrites sequences."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.errors import wrong
from regard.models.config import AttentionConfig, ModelConfig, RecurrentConfig
from regard.models.ranges import CheckedConfig, Count, Natural, between
from regard.training import Training, configure_cosine_training

Rule = Literal["invert", "copy", "sort"]
RULES: tuple[Rule, ...] = ("invert", "copy", "sort")


@dataclass(frozen=True, slots=True)
class InversionData(CheckedConfig):
    """Sequences of letters, drawn anew for each epoch; those held out are never among them."""

    rule: Rule = "invert"
    symbols: Annotated[int, between(2, 26, fix="use 10")] = 10  # letters of the alphabet
    shortest: int = 2  # letters of a sequence, at least
    longest: int = 10  # letters of a sequence, at most
    items: Count = 6400  # sequences in an epoch
    held_out: Count = 500  # sequences of each set that is tested on, at most
    seed: Natural = 1  # of what is generated, or of what is held out

    def check(self) -> None:
        if not 1 <= self.shortest <= self.longest:
            raise wrong("shortest", self.shortest, f"1 to longest={self.longest}", "use 2")


@dataclass(frozen=True, slots=True)
class InversionConfig(CheckedConfig):
    """The configuration of a model that rewrites sequences."""

    task: Literal["inversion"] = "inversion"
    data: InversionData = field(default_factory=InversionData)
    model: ModelConfig = field(
        default_factory=lambda: configure_small_model(
            "bahdanau", AttentionConfig(score="additive", hidden=48), RecurrentConfig(hidden=48)
        )
    )
    batch: Count = 64  # sequences in a batch
    training: Training = field(default_factory=lambda: configure_cosine_training(6e-3, 50, epochs=20, keep=1, log=20))


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
