"""Sound clips with their transcripts, and data sets of them."""

from typing import NamedTuple

from regard.algebra.shapes import Float, Tensor
from regard.tasks.data.dataset import Dataset, FixedDataset


class Clip(NamedTuple):
    """A sound, its transcript, and a name to speak of it by."""

    samples: Float[Tensor, " sample"]
    text: str
    name: str

    def to_bytes(self) -> bytes:
        """Return the content, for a fingerprint."""
        return f"{self.text}\n".encode() + self.samples.numpy().tobytes()


Sounds = Dataset[Clip]
RecordedClips = FixedDataset[Clip]
