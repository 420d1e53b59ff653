"""Clips as frames and numbers, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.algebra.shapes import Float
from regard.tasks.data import BEGIN, END, PADDING, Vocabulary, filter_by_length, pad
from regard.tasks.speech.clips import Clip
from regard.tasks.speech.features import SpectrogramConfig, log_mel

Frames = Float[Tensor, "_frame filter"]  # of each clip as many as it has: lists hold several lengths


class SpeechBatch(NamedTuple):
    """Clips side by side, padded. A target has BEGIN before it and END behind it."""

    frames: Tensor
    frame_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class EncodedClips(NamedTuple):
    """Clips as frames, and their texts in the numbers of the vocabulary, closed by END; texts of those too long."""

    frames: Sequence[Frames]
    targets: Sequence[list[int]]
    notes: Sequence[str] = ()
    skipped: Sequence[str] = ()

    @property
    def lengths(self) -> list[int]:
        """In frames."""
        return [len(one) for one in self.frames]

    def collate(self, chosen: Sequence[int]) -> SpeechBatch:
        """Some of the clips as tensors."""
        targets = [[BEGIN, *self.targets[index]] for index in chosen]
        sizes = torch.tensor([len(target) for target in targets])
        return SpeechBatch(*pad_frames([self.frames[index] for index in chosen]), pad(targets, PADDING), sizes)


def encode_clips(
    clips: Sequence[Clip], features: SpectrogramConfig, vocabulary: Vocabulary, limit: int
) -> EncodedClips:
    """Every clip of at most `limit` frames, and a note on the others."""
    lengths = [features.count_frames(len(clip.samples)) for clip in clips]
    kept, notes = filter_by_length(lengths, limit, "clips")
    frames = [log_mel(clips[index].samples, features) for index in kept]
    targets = [[*vocabulary.encode(clips[index].text), END] for index in kept]
    missed = [clip.text for clip, length in zip(clips, lengths, strict=True) if length > limit]
    return EncodedClips(frames, targets, [note.replace("tokens", "frames") for note in notes], missed)


def describe_skipped(clips: Sequence[Clip], features: SpectrogramConfig, limit: int) -> list[str]:
    """What is said of held-out clips that are too long: to leave them out would flatter the listener."""
    missed = sum(features.count_frames(len(clip.samples)) > limit for clip in clips)
    note = f"{missed} of {len(clips)} clips are longer than {limit} frames and not heard: all of each is an error"
    return [note] if missed else []


def pad_frames(clips: Sequence[Frames]) -> tuple[Tensor, Tensor]:
    """Frames of clips as one tensor, and their lengths."""
    return torch.nn.utils.rnn.pad_sequence(list(clips), batch_first=True), torch.tensor([len(one) for one in clips])
