"""One decoding step of additive attention: one query for each sample, over padded sources that do not change.

Whoever can keeps the projected keys from step to step; the others project them at every step, as they do in use.
"""

import torch
from torch import nn

import regard
from benchmarks.claim import Contender
from benchmarks.contenders.additive import (
    AdditiveInputs,
    AdditiveSizes,
    TextbookAttention,
    build_joeynmt_module,
    build_keras_layer,
    build_opennmt_module,
)
from regard.layers import Attention, Mechanism, Projections


def ours(sizes: AdditiveSizes) -> Contender:
    """The operator over keys that were projected before."""
    given = AdditiveInputs(sizes)
    score = regard.Additive.projected(sizes.hidden)
    score.weight = nn.Parameter(given.weight.detach().clone())
    key, mask = given.far(given.source).detach(), regard.Lengths(given.lengths)
    return Contender(lambda: regard.attend(given.near(given.query), key, given.source, score=score, mask=mask).output)


def layer(sizes: AdditiveSizes) -> Contender:
    """The same through the layer and its memory, as a decoder calls it."""
    given = AdditiveInputs(sizes)
    score = regard.Additive.projected(sizes.hidden)
    score.weight = nn.Parameter(given.weight.detach().clone())
    module = Attention(Projections(given.near, given.far), mechanism=Mechanism(score))
    memory = module.remember(given.source.detach(), mask=regard.Lengths(given.lengths))
    return Contender(lambda: module(given.query, memory))


def textbook(sizes: AdditiveSizes) -> Contender:
    """Plain torch, from the definition."""
    given = AdditiveInputs(sizes)
    module = TextbookAttention(given)
    return Contender(lambda: module(given.query, given.source, given.lengths))


def keras(sizes: AdditiveSizes) -> Contender:
    """Keras 3 on torch, over keys that were projected before."""
    given = AdditiveInputs(sizes)
    module = build_keras_layer(given)
    key = given.far(given.source).detach()
    real = torch.arange(sizes.keys)[None, :] < given.lengths[:, None]
    return Contender(lambda: module([given.near(given.query), given.source, key], mask=[None, real]))


def opennmt(sizes: AdditiveSizes) -> Contender:
    """OpenNMT-py's `GlobalAttention`, type mlp."""
    given = AdditiveInputs(sizes)
    module = build_opennmt_module(given)
    return Contender(lambda: module(given.query, given.source, src_len=given.lengths)[0])


def joeynmt(sizes: AdditiveSizes) -> Contender:
    """JoeyNMT's `BahdanauAttention`, over keys that were projected before."""
    given = AdditiveInputs(sizes)
    module = build_joeynmt_module(given)
    module.compute_proj_keys(given.source)
    mask = (torch.arange(sizes.keys)[None, :] < given.lengths[:, None])[:, None, :]
    return Contender(lambda: module(given.query, mask, given.source)[0])


PEERS = {"textbook": textbook, "Keras": keras, "OpenNMT-py": opennmt, "JoeyNMT": joeynmt}
