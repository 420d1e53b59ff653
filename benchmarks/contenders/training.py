"""One update of a model that translates, on the same sentences: forward, backward, clipping, AdamW.

The sizes, the rate of dropout and label smoothing are the same. Weights differ, and so do losses: what is alike is the
work, the same tokens read and said. All sum their loss over the target tokens, and the gradient is divided by their
number and clipped in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.claim import Contender
from benchmarks.contenders import translators
from benchmarks.contenders.peer_modules import borrow
from benchmarks.contenders.text import PADDING, Batch, Text
from benchmarks.contenders.translators import Shape
from benchmarks.contenders.tutorials import TutorialRecurrent, TutorialTransformer
from regard.training.step import scale_gradients

SMOOTHING, CLIP, RATE = 0.1, 1.0, 1e-4


@dataclass(frozen=True, slots=True)
class Update:
    """A model, and what it learns from."""

    shape: Shape
    batch: Batch


def build_update(model: nn.Module, tokens: int, loss: Callable[[], Tensor]) -> Contender:
    """Return the update, for a loss that is a sum over so many tokens."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    model.train()

    def update() -> Tensor:
        with torch.enable_grad():
            total = loss()
            total.backward()
        scale_gradients(model.parameters(), 1 / tokens, CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return total.detach() / tokens

    return Contender(update, tuple(parameter for parameter in model.parameters() if parameter.requires_grad))


def ours(wanted: Update) -> Contender:
    """Our model and its loss."""
    text, model = Text(wanted.batch), translators.ours(wanted.shape)
    sides = text.source, text.source_lengths, text.target, text.target_lengths
    return build_update(model, text.tokens, lambda: model.loss(*sides, smoothing=SMOOTHING).total)


def plain(wanted: Update) -> Contender:
    """What a tutorial writes around `nn.Transformer`, or around `nn.GRU`."""
    text = Text(wanted.batch)
    model = (TutorialTransformer if wanted.shape.kind == "transformer" else TutorialRecurrent)(wanted.shape)
    said = text.target[:, :-1]
    return build_update(model, text.tokens, lambda: compute_loss(model(text.source, text.source_lengths, said), text))


def marian(wanted: Update) -> Contender:
    """transformers' Marian, with the loss of its training examples."""
    text, model = Text(wanted.batch), translators.marian(wanted.shape)
    mask, said = (text.source != PADDING).long(), text.target[:, :-1]

    def loss() -> Tensor:
        return compute_loss(model(text.source, mask, decoder_input_ids=said, use_cache=False).logits, text)

    return build_update(model, text.tokens, loss)


def joeynmt(wanted: Update) -> Contender:
    """JoeyNMT's model and its loss."""
    text, model = Text(wanted.batch), translators.joeynmt(wanted.shape)
    model.loss_function = "crossentropy", SMOOTHING
    batch = vars(translators.build_joeynmt_batch(text))
    return build_update(model, text.tokens, lambda: model(return_type="loss", **batch)[0])


def opennmt(wanted: Update) -> Contender:
    """OpenNMT-py's model and its loss."""
    text, model = Text(wanted.batch), translators.opennmt(wanted.shape)
    criterion = nn.CrossEntropyLoss(ignore_index=PADDING, reduction="sum", label_smoothing=SMOOTHING)
    compute = borrow("onmt.utils.loss").LossCompute(criterion, model.generator, tgt_shift_index=1)
    batch = {"src": text.source[..., None], "srclen": text.source_lengths, "tgt": text.target[..., None]}

    def loss() -> Tensor:
        found: Tensor = compute(batch, *model(batch["src"], batch["tgt"], batch["srclen"]))[0]
        return found

    return build_update(model, text.tokens, loss)


def compute_loss(logits: Tensor, text: Text) -> Tensor:
    """Return the loss of a tutorial: scores of padding too, which are then ignored."""
    wanted, sums = text.target[:, 1:].flatten(), {"ignore_index": PADDING, "reduction": "sum"}
    return F.cross_entropy(logits.flatten(0, 1), wanted, label_smoothing=SMOOTHING, **sums)  # type: ignore[arg-type]
