"""Run folders that commands work with."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.translation import Translator


@dataclass
class Opening:
    """How a run folder is opened."""

    weights: Path | None = None
    "Other weights: a file, or its name in the run folder."
    threads: int = 0
    "How many torch may use; 0: as the run was told."

    def translator(self, run: Path) -> "Translator":
        """The translator of a run folder."""
        import torch

        from regard.tasks import config_of
        from regard.tasks.translation import Translator

        config = config_of(run)
        if self.threads or config.training.threads:
            torch.set_num_threads(self.threads or config.training.threads)
        return Translator.load(config, run, self.weights)
