"""From images to captions, with the attention of each word."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch

from regard.algebra.shapes import Float, Tensor
from regard.models import BeamOptions, EncoderDecoder, EncoderOutput, Hypothesis, HypothesisScorer
from regard.models.encoders.grid import GridEncoder
from regard.models.search import take_best
from regard.tasks.data import Vocabulary
from regard.tasks.data.special_tokens import search

BATCH_SIZE = 100  # images at once
LONGEST = 60  # words of a caption, at most; Chinese characters are words


class Caption(NamedTuple):
    """The caption of one image: its words, and a row of weights over the regions for each, if there is attention."""

    text: str
    words: list[str]
    score: float
    weights: Float[Tensor, "word region"] | None
    tokens: Sequence[int] = ()


def generate_captions(
    model: EncoderDecoder[Any],
    vocabulary: Vocabulary,
    source: Tensor,
    *,
    options: BeamOptions | None = None,
    attention: bool = False,
) -> list[Caption]:
    """Return a caption for each image, by greedy search unless there are options of a beam search."""
    with torch.inference_mode():
        encoded = encode_images(model, source.to(next(model.parameters()).device))
        best = take_best(search(model.decoder, encoded, LONGEST, options, attention=attention))
    return [decode_caption(hypothesis, vocabulary) for hypothesis in best]


def build_search_options(width: int, length_penalty: float) -> BeamOptions | None:
    """Return options of a beam search, or none for a width of 1. A penalty of 1 takes the mean over the words."""
    return None if width == 1 else BeamOptions(width, 1, "exact", HypothesisScorer("average", length_penalty))


def encode_images(model: EncoderDecoder[Any], source: Tensor) -> EncoderOutput:
    """Return the states of images, all of which have the same number of regions."""
    regions = cast(GridEncoder, model.encoder).regions
    return model.encode(source, torch.full((len(source),), regions, device=source.device))


def decode_caption(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Caption:
    """Return a hypothesis in words, without the weights of the end token."""
    weights = None if hypothesis.weights is None else hypothesis.weights[:-1]
    words = vocabulary.get_tokens(hypothesis.tokens)
    return Caption(vocabulary.decode(hypothesis.tokens), words, hypothesis.score, weights, hypothesis.tokens)


def split_into_batches(count: int) -> Sequence[range]:
    """Return ranges of images that are computed together."""
    return [range(start, min(count, start + BATCH_SIZE)) for start in range(0, count, BATCH_SIZE)]
