"""Clips as frames and numbers, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.algebra.shapes import Float
from regard.tasks.data import BEGIN, END, PADDING, Vocabulary, fitting, pad
from regard.tasks.speech.clips import Clip
from regard.tasks.speech.features import Features, log_mel

Frames = Float[Tensor, "_frame filter"]  # of each clip as many as it has: lists hold several lengths


class Batch(NamedTuple):
    """Clips side by side, padded. A target has BEGIN before it and END behind it."""

    frames: Tensor
    frame_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class Heard(NamedTuple):
    """Clips as frames, and their texts in the numbers of the vocabulary, closed by END; texts of those too long."""

    frames: Sequence[Frames]
    targets: Sequence[list[int]]
    notes: Sequence[str] = ()
    missed: Sequence[str] = ()

    @property
    def lengths(self) -> list[int]:
        """In frames."""
        return [len(one) for one in self.frames]

    def batch(self, chosen: Sequence[int]) -> Batch:
        """Some of the clips as tensors."""
        targets = [[BEGIN, *self.targets[index]] for index in chosen]
        sizes = torch.tensor([len(target) for target in targets])
        return Batch(*side_by_side([self.frames[index] for index in chosen]), pad(targets, PADDING), sizes)


def heard(clips: Sequence[Clip], features: Features, vocabulary: Vocabulary, limit: int) -> Heard:
    """Every clip of at most `limit` frames, and a note on the others."""
    lengths = [features.frames(len(clip.samples)) for clip in clips]
    kept, notes = fitting(lengths, limit, "clips")
    frames = [log_mel(clips[index].samples, features) for index in kept]
    targets = [[*vocabulary.encode(clips[index].text), END] for index in kept]
    missed = [clip.text for clip, length in zip(clips, lengths, strict=True) if length > limit]
    return Heard(frames, targets, [note.replace("tokens", "frames") for note in notes], missed)


def note_on_missed(clips: Sequence[Clip], features: Features, limit: int) -> list[str]:
    """What is said of held-out clips that are too long: to leave them out would flatter the listener."""
    missed = sum(features.frames(len(clip.samples)) > limit for clip in clips)
    note = f"{missed} of {len(clips)} clips are longer than {limit} frames and not heard: all of each is an error"
    return [note] if missed else []


def side_by_side(clips: Sequence[Frames]) -> tuple[Tensor, Tensor]:
    """Frames of clips as one tensor, and their lengths."""
    return torch.nn.utils.rnn.pad_sequence(list(clips), batch_first=True), torch.tensor([len(one) for one in clips])
