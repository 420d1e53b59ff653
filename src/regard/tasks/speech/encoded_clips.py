"""Clips as frames and token ids, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.algebra.shapes import Float
from regard.tasks.data import BEGIN, END, Vocabulary, filter_by_length
from regard.tasks.data.batches import pad_rows
from regard.tasks.speech.clips import Clip
from regard.tasks.speech.features import SpectrogramConfig, log_mel

Frames = Float[Tensor, "_frame filter"]  # the number of frames differs within a list


class SpeechBatch(NamedTuple):
    """Padded clips. A target begins with BEGIN and ends with END."""

    frames: Tensor
    frame_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class EncodedClips(NamedTuple):
    """Clips as frames, their texts as token ids closed by END, and the texts of clips that are too long (`skipped`)."""

    frames: Sequence[Frames]
    targets: Sequence[list[int]]
    notes: Sequence[str] = ()
    skipped: Sequence[str] = ()

    @property
    def lengths(self) -> list[int]:
        """Lengths in frames."""
        return [len(one) for one in self.frames]

    def collate(self, chosen: Sequence[int]) -> SpeechBatch:
        """Return some of the clips as a batch."""
        targets = [self.targets[index] for index in chosen]
        return SpeechBatch(*pad_frames([self.frames[index] for index in chosen]), *pad_rows(targets, BEGIN))


def encode_clips(
    clips: Sequence[Clip], features: SpectrogramConfig, vocabulary: Vocabulary, limit: int
) -> EncodedClips:
    """Encode the clips of at most `limit` frames, with a note on the others."""
    lengths = [features.count_frames(len(clip.samples)) for clip in clips]
    kept, notes = filter_by_length(lengths, limit, "clips", "frames")
    frames = [log_mel(clips[index].samples, features) for index in kept]
    targets = [[*vocabulary.encode(clips[index].text), END] for index in kept]
    missed = [clip.text for clip, length in zip(clips, lengths, strict=True) if length > limit]
    return EncodedClips(frames, targets, notes, missed)


def describe_skipped(clips: Sequence[Clip], features: SpectrogramConfig, limit: int) -> list[str]:
    """Return a note on held-out clips that are too long: they count as wrong, as leaving them out would flatter."""
    missed = sum(features.count_frames(len(clip.samples)) > limit for clip in clips)
    note = f"{missed} of {len(clips)} clips are longer than {limit} frames: they count as wrong"
    return [note] if missed else []


def pad_frames(clips: Sequence[Frames]) -> tuple[Tensor, Tensor]:
    """Return frames of clips as one tensor, and their lengths."""
    return torch.nn.utils.rnn.pad_sequence(list(clips), batch_first=True), torch.tensor([len(one) for one in clips])
