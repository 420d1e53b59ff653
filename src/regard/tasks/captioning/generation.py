"""From images to captions, each word with where it was looked for."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch

from regard.algebra.shapes import Float, Tensor
from regard.models import (
    BeamOptions,
    EncoderDecoder,
    EncoderOutput,
    Hypothesis,
    HypothesisScorer,
    beam_search,
    greedy_search,
)
from regard.models.encoders.grid import GridEncoder
from regard.models.search import take_best
from regard.tasks.data import Vocabulary
from regard.tasks.data.special_tokens import SPECIAL_TOKENS

BATCH_SIZE = 100  # images at once
LONGEST = 40  # words of a caption, at most


class Caption(NamedTuple):
    """What was said of one image: words and a row of weights over its regions for each, none without attention."""

    text: str
    words: list[str]
    score: float
    weights: Float[Tensor, "word region"] | None


def generate_captions(
    model: EncoderDecoder[Any],
    vocabulary: Vocabulary,
    source: Tensor,
    *,
    options: BeamOptions | None = None,
    attention: bool = False,
) -> list[Caption]:
    """A caption for each image, by greedy search where there is no plan of another."""
    with torch.inference_mode():
        encoded = encode_images(model, source.to(next(model.parameters()).device))
        if options is None:
            found = greedy_search(model.decoder, encoded, SPECIAL_TOKENS, LONGEST, attention=attention)
        else:
            several = beam_search(model.decoder, encoded, SPECIAL_TOKENS, LONGEST, options=options, attention=attention)
            found = take_best(several)
    return [decode_caption(one, vocabulary) for one in found]


def build_search_options(width: int, length_penalty: float) -> BeamOptions | None:
    """A beam, none where it is one wide. A `length_penalty` of 0 takes the log-probability, 1 its mean over the words."""
    return None if width == 1 else BeamOptions(width, 1, "exact", HypothesisScorer("average", length_penalty))


def encode_images(model: EncoderDecoder[Any], source: Tensor) -> EncoderOutput:
    """Images as a decoder reads them: all have as many regions."""
    regions = cast(GridEncoder, model.encoder).regions
    return model.encode(source, torch.full((len(source),), regions, device=source.device))


def decode_caption(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Caption:
    """A hypothesis in words. What it looked at when it ended is left out."""
    weights = None if hypothesis.weights is None else hypothesis.weights[:-1]
    words = vocabulary.get_tokens(hypothesis.tokens)
    return Caption(vocabulary.decode(hypothesis.tokens), words, hypothesis.score, weights)


def split_into_batches(count: int) -> Sequence[range]:
    """Numbers of images that are looked at together."""
    return [range(start, min(count, start + BATCH_SIZE)) for start in range(0, count, BATCH_SIZE)]
