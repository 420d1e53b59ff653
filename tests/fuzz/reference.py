"""A trial with its parts and tensors, the result in float64, and the error that each backend is allowed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from regard.algebra.aggregates import Soft
from regard.algebra.definition import weigh
from regard.algebra.normalizers import Entmax, Entmax15, Normalizer, Sparsemax
from regard.algebra.pairs import Pairs
from regard.algebra.parts import Parts
from regard.algebra.scores import Score
from regard.algebra.scores.base import as_dot
from regard.algebra.terms import broadcast_per_head
from regard.compute import verification
from regard.compute.attend import AttentionResult
from regard.compute.verification import Reference, cast_parts, compute_reference
from tests.fuzz.trial import Trial

Tensors = Sequence[torch.Tensor]
KERNEL = {("sdpa", torch.float32): 20, ("local", torch.float32): 20, ("auto", torch.float32): 20}  # torch's "exp_u20"
# Factors: inputs that are nearly these, for the definition to err on.
CLONES = (1.0, 1.03, 0.98, 1.11, 0.93, 1.07, 0.89, 1.17, 0.83, 1.23, 1.31, 0.79)
KERNEL_NOISE = 20  # roundings of a score's gradient: those of torch's exponential
TIE = 1e-9
SOME = 1e-4  # a weight that counts
LINEAR = 0.125  # a score rounded by more than this changes weights at will, and twenty samples do not bound the error
NARROWER = 2.0**-29  # a rounding of float64, in roundings of float32


class ErrorBudget(NamedTuple):
    """The errors of the definition itself in the dtype of the trial, against float64."""

    output: float
    weights: float
    gradients: list[float]

    def combine(self, other: "ErrorBudget", factor: float = 1.0) -> "ErrorBudget":
        """Return the larger of both errors."""
        pairs = zip(self.gradients, other.gradients, strict=True)
        return ErrorBudget(
            max(self.output, factor * other.output),
            max(self.weights, factor * other.weights),
            [max(a, factor * b) for a, b in pairs],
        )


class PerturbedScore(Score):
    """A score each of whose numbers is rounded up, down or not at all."""

    def __init__(self, score: Score, size: float, seed: int) -> None:
        super().__init__()
        self.score, self.size, self.seed = score, size, seed

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        scores = self.score(query, key)
        steps = torch.randint(-1, 2, scores.shape, generator=torch.Generator().manual_seed(self.seed))
        steps = steps.to(scores.dtype)  # a number times integers would be float32
        perturbed: torch.Tensor = scores * (1 + self.size * steps)
        return perturbed

    def check(self, query: torch.Tensor, key: torch.Tensor) -> None:
        self.score.check(query, key)


class BuiltTrial:
    """The parts and tensors of a trial, the definition's result in float64, and its errors in the trial's dtype."""

    def __init__(self, trial: Trial) -> None:
        names = trial.build()
        self.trial = trial
        self.parts: Parts = names["parts"]
        self.clean: Tensors = names["q"], names["k"], names["v"]
        self.dirty: Tensors = (names["q"], names.get("dirty_k", names["k"]), names.get("dirty_v", names["v"]))
        self.dtype = self.clean[0].dtype
        self.exact = cast_parts(self.parts, torch.float64)
        self.wide = [tensor.detach().double().requires_grad_() for tensor in self.clean]
        self.true = compute_reference(self.exact, self.wide, dropout=trial.dropout)
        self.rows = find_clean_rows(trial, names)
        self.budget = self._measure_budget(self.dtype, 1.0) if self.dtype != torch.float64 else None
        self.refined, self.counted = False, 0.0

    @property
    def defined(self) -> bool:
        """Return whether the definition gives finite numbers, in float64 and in the dtype of the trial."""
        finite = bool(torch.isfinite(self.true.attended.output).all()) and not self._is_tied()
        return finite and (self.budget is None or math.isfinite(self.budget.output))

    def compute_logits(self) -> torch.Tensor:
        """Return the scores in float64, as the softmax sees them."""
        query, key, _ = self.wide
        pairs = Pairs(self.trial.queries, self.trial.keys)
        scores = self.exact.score(query, key) + (0.0 if self.exact.bias is None else self.exact.bias(pairs))
        temperature = getattr(self.exact.normalizer, "temperature", 1.0)
        logits: torch.Tensor = scores / broadcast_per_head(temperature)
        return logits

    def largest_score(self) -> float:
        """Return the absolute value of the largest score."""
        with torch.no_grad():
            return float(self.compute_logits().abs().max())

    def _is_tied(self) -> bool:
        """Return whether rounding decides which key an argmax takes."""
        if "argmax" not in self.trial.aggregate or self.trial.keys == 1:
            return False
        soft = self.exact._replace(aggregate=Soft())
        pairs = Pairs(self.trial.queries, self.trial.keys)
        with torch.no_grad():
            best = weigh(soft, soft.score, *self.wide[:2], pairs, seed=None).weights.topk(2, -1).values
        return bool(((best[..., 0] > 0) & (best[..., 0] - best[..., 1] < TIE)).any())

    def _measure_noise(self) -> list[float]:
        """Return how far one rounding of the scores' gradient moves the gradient of each tensor behind the scores.

        The gradient of one score is a slope (its weight, or w^(2−α) of entmax) times a difference. The definition may
        find that difference to be exactly 0, of a row with one key for example, where a kernel finds a rounding of 0.
        What is subtracted is the same number for a whole row, so its rounding has one sign there, and signs of their
        own elsewhere.
        """
        noise = self._move_gradients(self.compute_logits())
        fused = self._compute_fused_logits()
        if fused is None:
            return [torch.finfo(self.dtype).eps * largest for largest in noise]
        eps = torch.finfo(torch.promote_types(self.dtype, torch.float32)).eps  # a half is fused in float32
        pairs = zip(noise, self._move_gradients(fused), strict=True)
        return [max(torch.finfo(self.dtype).eps * own, eps * largest) for own, largest in pairs]

    def _move_gradients(self, logits: torch.Tensor) -> list[float]:
        """Return the largest change of each gradient if the gradient of each score changes by its slope."""
        slopes, value = self._find_slopes(), self.wide[2].detach()
        size = float(value.abs().max() if value.numel() else 0.0) * math.sqrt(self.trial.value)
        wanted = [tensor for tensor in (*self.wide, *self.exact.tensors()) if tensor.requires_grad]
        largest = [0.0] * len(wanted)
        signs = torch.randint(0, 2, slopes.shape, generator=torch.Generator().manual_seed(5)) * 2 - 1
        # One sign for all: of few drawn ones, opposite ones may cancel in a tensor that rows share.
        for table in (signs * slopes, signs[..., :1] * slopes, slopes):
            loss = (logits * table * size).sum()
            moved = torch.autograd.grad(loss, wanted, allow_unused=True, retain_graph=True)
            found = [0.0 if slope is None or not slope.numel() else float(slope.abs().max()) for slope in moved]
            largest = [max(*both) for both in zip(found, largest, strict=True)]
        return largest

    def _compute_fused_logits(self) -> torch.Tensor | None:
        """Return the scores that a fused kernel differentiates, if they are others than those of the definition.

        It leaves out what all keys of a row share, such as ‖q‖² of a Gaussian: the gradients of a row's scores sum to
        zero. Rounded ones do not quite, so that a query equal to its key gets a gradient that is not exactly 0.
        """
        if self.exact.score.form != "dot" or not self.trial.keys:
            return None
        form = as_dot(self.exact.score).dot_form(*self.wide[:2])
        temperature = broadcast_per_head(getattr(self.exact.normalizer, "temperature", 1.0))
        return None if form.row is None else replace(form, row=None).compute_scores() / temperature

    @torch.no_grad()
    def _find_slopes(self) -> torch.Tensor:
        """Return how steep each weight is in its score, up to what all of a row share."""
        weights, alpha = self.true.weights, find_alpha(self.exact.normalizer)
        slopes: torch.Tensor = weights if alpha is None else torch.where(weights > 0, weights ** (2 - alpha), 0.0)
        return slopes

    def _measure_budget(self, dtype: torch.dtype, factor: float) -> ErrorBudget:
        """Return the errors of the definition on inputs that are multiplied by a factor."""
        parts = cast_parts(self.parts, dtype)
        tensors = [(t.detach().to(dtype) * factor).requires_grad_() for t in self.clean]
        found = compute_reference(parts, tensors, dropout=self.trial.dropout)
        return measure_errors(found, compute_truth(parts, tensors, self.trial.dropout))

    def _measure_conditioning(self, seed: int) -> ErrorBudget:
        """Return what rounding the scores changes: much with a high α, if a weight is nearly zero."""
        score = PerturbedScore(self.exact.score, 2 * torch.finfo(self.dtype).eps, seed)
        found = compute_reference(self.exact._replace(score=score), self.wide, dropout=self.trial.dropout)
        return measure_errors(found, self.true)

    def run(self, backend: str) -> AttentionResult:
        """Call the operator with the hidden content in place."""
        plain = backend == "flex" and not torch.is_grad_enabled()  # it heeds requires_grad even then
        tensors = [tensor.detach() for tensor in self.dirty] if plain else self.dirty
        return verification.run_backend(self.parts, tensors, backend, dropout=self.trial.dropout)  # type: ignore[arg-type]

    @torch.inference_mode(mode=False)
    @torch.enable_grad()
    def refine(self) -> None:
        """Measure the budget on more inputs: on few numbers the definition may be exact by luck."""
        self.refined = True
        narrow = torch.float32 if self.budget is None else self.dtype
        budget = self.budget or ErrorBudget(0.0, 0.0, [0.0] * len(self.true.gradients))
        for factor in CLONES:
            budget = budget.combine(
                self._measure_budget(narrow, factor), 8 * NARROWER if self.dtype == torch.float64 else 1.0
            )
        self.counted = self._find_largest_counted()
        for seed in range(8):
            budget = budget.combine(self._measure_conditioning(seed))
        if self.dtype != torch.float64:
            pairs, factor = zip(budget.gradients, self._measure_noise(), strict=True), KERNEL_NOISE + self.counted
            budget = budget._replace(gradients=[error + factor * noise for error, noise in pairs])
        chance = torch.finfo(self.dtype).eps * self.counted > LINEAR
        self.budget = ErrorBudget(0.0, 0.0, [0.0] * len(budget.gradients)).combine(budget, 2.0) if chance else budget

    def _find_largest_counted(self) -> float:
        """Return the largest score whose weight counts: each order of summing rounds in proportion to it."""
        with torch.no_grad():
            scores, weights = torch.broadcast_tensors(self.compute_logits(), self.true.weights)
            seen = scores[(weights > SOME) & scores.isfinite()].abs()
        return float(seen.max()) if seen.numel() and self.dtype != torch.float64 else 0.0

    def compute_limit(self, error: float, true: torch.Tensor, backend: str, *, gradient: bool = False) -> float:
        """Return twice (the definition's error + one rounding), plus what torch's kernel adds."""
        size = float(true.abs().max()) if true.numel() else 0.0
        if self.dtype == torch.float64:
            return (verification.GRADIENT if gradient else verification.VALUE) * max(1.0, size) + error
        rounding = torch.finfo(self.dtype).eps * (max(1.0, size) if gradient else size)
        kernel = KERNEL.get((backend, self.dtype), 0) * (1 + gradient)
        return 2 * (error + rounding) + (kernel + self.counted) * rounding

    def compare(self, found: AttentionResult, backend: str) -> tuple[str, float, float] | None:
        """Return name, error and allowed error of the first of output, weights and gradients that errs too much."""
        budget = self.budget or ErrorBudget(0.0, 0.0, [0.0] * len(self.true.gradients))
        true = self.true.attended.output
        if found.output.shape != true.shape:
            return f"shape {tuple(found.output.shape)} for {tuple(true.shape)}", math.inf, 0.0
        error, allowed = find_worst(found.output, true, self.rows), self.compute_limit(budget.output, true, backend)
        if not error <= allowed:
            return "output", error, allowed
        dense = found.weights.dense().detach()
        if dense.shape != self.true.weights.expand(*self.trial.lead, -1, -1).shape:
            return f"weights of shape {tuple(dense.shape)}", math.inf, 0.0
        error = find_worst(dense, self.true.weights.expand(dense.shape), self.rows)
        allowed = self.compute_limit(budget.weights, torch.ones(()), backend)
        if not error <= allowed:
            return "weights", error, allowed
        return self.compare_gradients(found, backend, self.true)

    def compare_gradients(
        self, found: AttentionResult, backend: str, reference: Reference
    ) -> tuple[str, float, float] | None:
        """Return name, error and allowed error of the first gradient that errs too much."""
        exposed = self.rows is not None and not bool(self.rows.all())
        if exposed or not found.output.requires_grad:
            return None
        return self.compare_slopes(verification.compute_gradients(self.parts, self.dirty, found), backend, reference)

    def compare_slopes(
        self, slopes: Sequence[torch.Tensor | None], backend: str, reference: Reference
    ) -> tuple[str, float, float] | None:
        """Return the same for gradients at hand: those of query, key, value and, if they are given, of the parts."""
        budget = self.budget or ErrorBudget(0.0, 0.0, [0.0] * len(self.true.gradients))
        names = ["query", "key", "value", *["part"] * (len(slopes) - 3)]
        for name, slope, true, own in zip(names, slopes, reference.gradients, budget.gradients, strict=False):
            if slope is None and true is None:
                continue
            true = torch.zeros_like(slope) if true is None else true  # type: ignore[arg-type]
            if not torch.isfinite(true).all() or not math.isfinite(own):
                continue
            slope = torch.zeros_like(true) if slope is None else slope
            error, allowed = find_worst(slope, true), self.compute_limit(own, true, backend, gradient=True)
            overflows = error == math.inf and allowed > torch.finfo(slope.dtype).max  # as any number would be allowed
            if not error <= allowed and not overflows:
                return f"gradient of {name}", error, allowed
        return None


def find_alpha(normalizer: Normalizer) -> float | torch.Tensor | None:
    """Return the α of a normalizer that gives some keys a weight of exactly 0; None of another."""
    known = {Sparsemax: 2.0, Entmax15: 1.5}
    alpha = normalizer.alpha if isinstance(normalizer, Entmax) else known.get(type(normalizer))
    if alpha is None or not bool((torch.as_tensor(alpha) > 1).all()):
        return None
    return broadcast_per_head(alpha)


def measure_errors(found: Reference, true: Reference) -> ErrorBudget:
    """Return the largest differences of two results."""
    slopes = zip(found.gradients, true.gradients, strict=True)
    return ErrorBudget(
        find_worst(found.attended.output, true.attended.output),
        find_worst(found.weights, true.weights),
        [0.0 if b is None or a is None else find_worst(a, b) for a, b in slopes],
    )


def compute_truth(parts: Parts, tensors: Tensors, dropout: float) -> Reference:
    """Return the definition of the same numbers in float64."""
    wide = [tensor.detach().double().requires_grad_() for tensor in tensors]
    return compute_reference(cast_parts(parts, torch.float64), wide, dropout=dropout)


def find_clean_rows(trial: Trial, names: dict[str, Any]) -> torch.Tensor | None:
    """Return a mask of the rows that see no overwritten key; None if there is no hidden content."""
    if not trial.hidden:
        return None
    exposed = (names["seen"] & names["hit"][..., None, :]).any(-1)
    return ~(exposed.cumsum(-1) > 0 if trial.is_sequential else exposed)


def find_worst(found: torch.Tensor, true: torch.Tensor, rows: torch.Tensor | None = None) -> float:
    """Return the largest difference, NaN if there is one."""
    difference = (found.detach().double() - true.detach().double()).abs()
    difference = torch.where((found == true), 0.0, difference)  # two that are infinite differ by nothing
    if rows is not None:
        difference = difference[rows.expand(difference.shape[:-1])]
    return float(difference.max()) if difference.numel() else 0.0
