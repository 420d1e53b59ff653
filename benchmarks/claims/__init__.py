"""One file for each claim: what is measured, against whom, and what must come out."""

from importlib import import_module

from benchmarks.claim import Claim

NAMES = (
    "additive_forward",
    "additive_backward",
    "additive_step",
    "additive_without_compiler",
    "additive_memory",
    "gaussian_written_out",
    "gaussian_cdist",
    "dot_sdpa",
    "multihead",
    "multihead_observed",
    "observing",
    "window",
    "sparse_masks",
    "hard",
    "sparse_normalizers",
    "alpha_entmax",
    "train_transformer",
    "train_recurrent",
    "beam_transformer",
    "beam_recurrent",
    "engine",
    "growth",
)


def find(name: str) -> Claim:
    """Return the claim of that name."""
    claim: Claim = import_module(f"benchmarks.claims.{name}").CLAIM
    return claim
