"""What must hold of a trial, whatever its parts: the properties, each with the error that is allowed."""

import contextlib
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from regard import verify
from regard.aggregates import Soft
from regard.catalog import Sizes
from regard.definition import weigh
from regard.errors import InputError, PlanError, RegardError
from regard.lowering import Backend
from regard.operator import Attended, attend
from regard.pairs import Pairs
from regard.parts import Parts
from regard.scores import Score
from regard.terms import per_head
from regard.verify import Truth, cast_parts, truth
from tests.fuzz.trial import Trial, cut

Tensors = Sequence[torch.Tensor]
KERNEL = {("sdpa", torch.float32): 20, ("local", torch.float32): 20, ("auto", torch.float32): 20}  # torch's "exp_u20"
SUMS = ("Softmax(", "Sparsemax(", "Entmax(", "tempered", "sparsemax", "entmax", '"softmax"')  # to one, or to nothing
CLONES = (1.0, 1.03, 0.98, 1.11, 0.93)  # factors: inputs that are nearly these, for the definition to err on
KERNEL_NOISE = 20  # roundings of a score's gradient: those of torch's exponential
TIE = 1e-9
ULPS = 32  # of a row that is to sum to one
NARROWER = 2.0**-29  # a rounding of float64, in roundings of float32


class Failure(NamedTuple):
    """A property that does not hold."""

    property: str
    backend: str
    message: str


class Slack(NamedTuple):
    """How far the definition itself is from the truth, in the dtype of the trial."""

    output: float
    weights: float
    gradients: list[float]

    def worst(self, other: "Slack", factor: float = 1.0) -> "Slack":
        """The larger of both."""
        pairs = zip(self.gradients, other.gradients, strict=True)
        return Slack(
            max(self.output, factor * other.output),
            max(self.weights, factor * other.weights),
            [max(a, factor * b) for a, b in pairs],
        )


SOME = 1e-4  # a weight that counts


class PerturbedScore(Score):
    """A score each of whose numbers is rounded up, down or not at all."""

    def __init__(self, score: Score, size: float, seed: int) -> None:
        super().__init__()
        self.score, self.size, self.seed = score, size, seed

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        scores = self.score(query, key)
        steps = torch.randint(-1, 2, scores.shape, generator=torch.Generator().manual_seed(self.seed))
        perturbed: torch.Tensor = scores * (1 + self.size * steps)
        return perturbed

    def check(self, query: torch.Tensor, key: torch.Tensor) -> None:
        self.score.check(query, key)


class Scene:
    """A trial that was built: its parts and tensors, the truth, and the errors of the definition."""

    def __init__(self, trial: Trial) -> None:
        names = trial.build()
        self.trial = trial
        self.parts: Parts = names["parts"]
        self.clean: Tensors = names["q"], names["k"], names["v"]
        self.dirty: Tensors = (names["q"], names.get("dirty_k", names["k"]), names.get("dirty_v", names["v"]))
        self.dtype = self.clean[0].dtype
        self.exact = cast_parts(self.parts, torch.float64)
        self.wide = [tensor.detach().double().requires_grad_() for tensor in self.clean]
        self.true = truth(self.exact, self.wide, dropout=trial.dropout)
        self.rows = rows_of(trial, names)
        self.slack = self._slack(self.dtype, 1.0) if self.dtype != torch.float64 else None
        self.refined, self.counted = False, 0.0

    @property
    def defined(self) -> bool:
        """Whether the definition says anything: in float64, and in the dtype of the trial."""
        finite = bool(torch.isfinite(self.true.attended.output).all()) and not self._tied()
        return finite and (self.slack is None or math.isfinite(self.slack.output))

    def _logits(self) -> torch.Tensor:
        """The scores in float64, as the softmax sees them."""
        query, key, _ = self.wide
        pairs = Pairs(self.trial.queries, self.trial.keys)
        scores = self.exact.score(query, key) + (0.0 if self.exact.bias is None else self.exact.bias(pairs))
        temperature = getattr(self.exact.normalizer, "temperature", 1.0)
        logits: torch.Tensor = scores / per_head(temperature)
        return logits

    def largest_score(self) -> float:
        """The largest score of any pair, or the largest number that one is the sum of."""
        with torch.no_grad():
            return float(self._logits().abs().max())

    def _tied(self) -> bool:
        """Whether rounding decides which of two weights is the largest, and the largest is taken."""
        if "argmax" not in self.trial.aggregate or self.trial.keys == 1:
            return False
        soft = self.exact._replace(aggregate=Soft())
        pairs = Pairs(self.trial.queries, self.trial.keys)
        with torch.no_grad():
            best = weigh(soft, soft.score, *self.wide[:2], pairs, seed=None).weights.topk(2, -1).values
        return bool(((best[..., 0] > 0) & (best[..., 0] - best[..., 1] < TIE)).any())

    def _noise(self) -> list[float]:
        """What roundings of the gradient of the scores become in the gradients of all that the scores are made of.

        The gradient of one score is a weight times a difference. The definition may find that difference to be
        exactly 0, of a row with one key for example, where a kernel finds a rounding of 0. What is subtracted is the
        same number for a whole row, so its rounding has one sign there, and signs of their own elsewhere.
        """
        weights, value = self.true.weights, self.wide[2].detach()
        signs = torch.randint(0, 2, weights.shape, generator=torch.Generator().manual_seed(5)) * 2 - 1
        size = float(value.abs().max() if value.numel() else 0.0) * math.sqrt(self.trial.value)
        wanted = [tensor for tensor in (*self.wide, *self.exact.tensors()) if tensor.requires_grad]
        noise = [0.0] * len(wanted)
        for table in (signs * weights, signs[..., :1] * weights):
            slopes = torch.autograd.grad((self._logits() * table * size).sum(), wanted, allow_unused=True)
            found = [0.0 if slope is None or not slope.numel() else float(slope.abs().max()) for slope in slopes]
            noise = [max(*both) for both in zip(found, noise, strict=True)]
        return [torch.finfo(self.dtype).eps * largest for largest in noise]

    def _slack(self, dtype: torch.dtype, factor: float) -> Slack:
        """The errors of the definition on inputs that differ by a factor."""
        parts = cast_parts(self.parts, dtype)
        tensors = [(t.detach().to(dtype) * factor).requires_grad_() for t in self.clean]
        found = truth(parts, tensors, dropout=self.trial.dropout)
        true = truth_of(parts, tensors, self.trial.dropout)
        slopes = zip(found.gradients, true.gradients, strict=True)
        return Slack(
            worst(found.attended.output, true.attended.output),
            worst(found.weights, true.weights),
            [0.0 if b is None or a is None else worst(a, b) for a, b in slopes],
        )

    def _conditioning(self, seed: int) -> Slack:
        """What one rounding of the scores becomes: much, with a high α, where a weight is nearly zero."""
        score = PerturbedScore(self.exact.score, 2 * torch.finfo(self.dtype).eps, seed)
        found = truth(self.exact._replace(score=score), self.wide, dropout=self.trial.dropout)
        slopes = zip(found.gradients, self.true.gradients, strict=True)
        return Slack(
            worst(found.attended.output, self.true.attended.output),
            worst(found.weights, self.true.weights),
            [0.0 if b is None or a is None else worst(a, b) for a, b in slopes],
        )

    def run(self, backend: str) -> Attended:
        """One call with what is hidden in place."""
        plain = backend == "flex" and not torch.is_grad_enabled()  # which counts who wants a gradient even then
        tensors = [tensor.detach() for tensor in self.dirty] if plain else self.dirty
        return verify.run(self.parts, tensors, backend, dropout=self.trial.dropout)  # type: ignore[arg-type]

    @torch.inference_mode(mode=False)
    @torch.enable_grad()
    def refine(self) -> None:
        """Look at more inputs: of a few numbers, the definition may have got one right by luck."""
        self.refined = True
        narrow = torch.float32 if self.slack is None else self.dtype
        slack = self.slack or Slack(0.0, 0.0, [0.0] * len(self.true.gradients))
        for factor in CLONES:
            slack = slack.worst(self._slack(narrow, factor), 8 * NARROWER if self.dtype == torch.float64 else 1.0)
        self.counted = self._counted()
        if self.dtype != torch.float64:
            for seed in range(8):
                slack = slack.worst(self._conditioning(seed), 1.0)
            pairs, factor = zip(slack.gradients, self._noise(), strict=True), KERNEL_NOISE + self.counted
            slack = slack._replace(gradients=[error + factor * noise for error, noise in pairs])
        self.slack = slack

    def _counted(self) -> float:
        """The size of the largest score that counts: any order of summing it rounds so much of it."""
        with torch.no_grad():
            scores, weights = torch.broadcast_tensors(self._logits(), self.true.weights)
            seen = scores[(weights > SOME) & scores.isfinite()].abs()
        return float(seen.max()) if seen.numel() and self.dtype != torch.float64 else 0.0

    def allowed(self, error: float, true: torch.Tensor, backend: str, *, gradient: bool = False) -> float:
        """Twice (the definition's error and one rounding), and what torch's kernel adds."""
        size = float(true.abs().max()) if true.numel() else 0.0
        if self.dtype == torch.float64:
            return (verify.GRADIENT if gradient else verify.VALUE) * max(1.0, size) + error
        rounding = torch.finfo(self.dtype).eps * (max(1.0, size) if gradient else size)
        kernel = KERNEL.get((backend, self.dtype), 0) * (1 + gradient)
        return 2 * (error + rounding) + (kernel + self.counted) * rounding

    def compare(self, found: Attended, backend: str) -> tuple[str, float, float] | None:
        """Name, error and allowance of the first of output, weights and gradients that is too far from the truth."""
        slack = self.slack or Slack(0.0, 0.0, [0.0] * len(self.true.gradients))
        true = self.true.attended.output
        if found.output.shape != true.shape:
            return f"shape {tuple(found.output.shape)} for {tuple(true.shape)}", math.inf, 0.0
        error, allowed = worst(found.output, true, self.rows), self.allowed(slack.output, true, backend)
        if not error <= allowed:
            return "output", error, allowed
        dense = found.weights.dense().detach()
        if dense.shape != self.true.weights.expand(*self.trial.lead, -1, -1).shape:
            return f"weights of shape {tuple(dense.shape)}", math.inf, 0.0
        error = worst(dense, self.true.weights.expand(dense.shape), self.rows)
        allowed = self.allowed(slack.weights, torch.ones(()), backend)
        if not error <= allowed:
            return "weights", error, allowed
        return self._compare_gradients(found, slack, backend)

    def _compare_gradients(self, found: Attended, slack: Slack, backend: str) -> tuple[str, float, float] | None:
        exposed = self.rows is not None and not bool(self.rows.all())
        if exposed or not found.output.requires_grad:
            return None
        slopes = verify.gradients(self.parts, self.dirty, found)
        names = ["query", "key", "value", *("part" for _ in self.parts.tensors())]
        for name, slope, true, own in zip(names, slopes, self.true.gradients, slack.gradients, strict=True):
            if slope is None and true is None:
                continue
            if true is None or not torch.isfinite(true).all() or not math.isfinite(own):
                continue
            slope = torch.zeros_like(true) if slope is None else slope
            error, allowed = worst(slope, true), self.allowed(own, true, backend, gradient=True)
            if not error <= allowed:
                return f"gradient of {name}", error, allowed
        return None


def truth_of(parts: Parts, tensors: Tensors, dropout: float) -> Truth:
    """The definition of the same numbers in float64."""
    wide = [tensor.detach().double().requires_grad_() for tensor in tensors]
    return truth(cast_parts(parts, torch.float64), wide, dropout=dropout)


def rows_of(trial: Trial, names: dict[str, Any]) -> torch.Tensor | None:
    """The rows that see nothing of the dirt; None where there is none."""
    if not trial.hidden:
        return None
    exposed = (names["seen"] & names["hit"][..., None, :]).any(-1)
    return ~(exposed.cumsum(-1) > 0 if trial.is_sequential else exposed)


def worst(found: torch.Tensor, true: torch.Tensor, rows: torch.Tensor | None = None) -> float:
    """The largest difference, NaN where there is one."""
    difference = (found.detach().double() - true.detach().double()).abs()
    difference = torch.where((found == true), 0.0, difference)  # two that are infinite differ by nothing
    if rows is not None:
        difference = difference[rows.expand(difference.shape[:-1])]
    return float(difference.max()) if difference.numel() else 0.0


def check_trial(trial: Trial) -> Failure | None:
    """The first property that does not hold, or None."""
    with warnings.catch_warnings(), cut(trial):
        warnings.simplefilter("ignore")
        try:
            scene = Scene(trial)
        except Exception as error:
            return None if is_ambiguous(error) else Failure("raises", "eager", first_line(error))
        if not scene.defined:
            return None
        return TRANSFORMS.get(trial.transform, check_backends)(scene)


AMBIGUOUS = ("expected no doubt whether", "expected an axis of queries behind")


def is_ambiguous(error: Exception) -> bool:
    """Return whether shapes were refused that could be meant in two ways."""
    return isinstance(error, InputError) and any(words in str(error) for words in AMBIGUOUS)


def first_line(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def backends_of(scene: Scene) -> list[str]:
    """The backends to try: all that can, or the one that the trial names."""
    trial = scene.trial
    if trial.backend != "all":
        return [trial.backend]
    sizes = Sizes(trial.dim, trial.key_dim, trial.value, trial.lead, trial.queries, trial.keys)
    able = verify.able(scene.parts, sizes, dropout=trial.dropout, dtype=scene.dtype)
    learned = any(tensor.requires_grad for tensor in scene.parts.tensors())
    return ["auto", "eager", *(name for name in able if name != "flex" or not learned)]


def check_backends(scene: Scene) -> Failure | None:
    """Every backend gives what the definition gives."""
    manner = {"no_grad": torch.no_grad, "inference": torch.inference_mode}.get(
        scene.trial.transform, contextlib.nullcontext
    )
    with manner():
        for backend in backends_of(scene):
            failure = _check_backend(scene, backend)
            if failure is not None:
                return failure
    return None


def _check_backend(scene: Scene, backend: Backend) -> Failure | None:  # type: ignore[valid-type]
    try:
        found = scene.run(backend)
        wrong = scene.compare(found, backend)
        if wrong is not None and not scene.refined:
            scene.refine()
            found = scene.run(backend)  # again, because a graph is walked back once
            wrong = scene.compare(found, backend)
        if wrong is not None:
            name, error, allowed = wrong
            return Failure(name, backend, f"error {error:.2e}, allowed {allowed:.2e}")
        return check_weights(scene, found, backend)
    except PlanError as error:
        return Failure("raises", backend, first_line(error)) if backend in ("auto", "eager") else None
    except Exception as error:
        return None if is_ambiguous(error) else Failure("raises", backend, first_line(error))


def check_weights(scene: Scene, found: Attended, backend: str) -> Failure | None:
    """Rows sum to one or are empty, output is weights times values, and the handle agrees with itself."""
    trial, dense = scene.trial, found.weights.dense().detach().double()
    if not dense.numel():
        return None
    rows = torch.ones(dense.shape[:-1], dtype=torch.bool) if scene.rows is None else scene.rows.expand(dense.shape[:-1])
    error_of_one = scene.allowed(0.0 if scene.slack is None else scene.slack.weights, torch.ones(()), backend)
    eps = torch.finfo(found.weights.dense().dtype).eps
    spread = trial.keys * error_of_one + ULPS * eps
    if trial.aggregate == "Soft()" and any(name in trial.normalizer for name in SUMS):
        sums = dense.sum(-1)
        some = scene.parts.mask.table(trial.queries, trial.keys).any(-1).expand(sums.shape)
        error = worst(sums[..., None], some.double()[..., None], rows)
        if not error <= spread:
            return Failure("sums", backend, f"a row of weights is off one by {error:.2e}, allowed {spread:.2e}")
    if trial.is_soft:
        wrong = _check_product(scene, found, dense, rows, error_of_one)
        if wrong:
            return Failure("product", backend, wrong)
    # From totals a weight is exp(score − total): as exact as a score that is rounded once.
    totals = 2 * eps * scene.largest_score() if found.weights.totals is not None else 0.0
    return _check_summary(scene, found, dense, rows, spread + totals, backend)


def _check_product(
    scene: Scene, found: Attended, dense: torch.Tensor, rows: torch.Tensor, error_of_one: float
) -> str | None:
    """Output is weights times values; a row that sees a NaN has NaN in both."""
    values = scene.clean[2].detach().double()
    product, own = dense @ values, 0.0 if scene.slack is None else scene.slack.output
    allowed = scene.allowed(own, scene.true.attended.output, "sdpa") + error_of_one * float(values.abs().sum(-2).max())
    error = worst(product, found.output, rows)
    if not error <= allowed:
        return f"output and weights @ value differ by {error:.2e}, allowed {allowed:.2e}"
    if scene.trial.hidden == "nan" and not bool(rows.all()):
        broken = torch.isnan(dense @ scene.dirty[2].detach().double()).any(-1)
        if not torch.equal(broken[~rows], torch.isnan(found.output).any(-1)[~rows]):
            return "a row that sees NaN is NaN in the output and not in weights @ value, or the other way round"
    return None


def _check_summary(
    scene: Scene, found: Attended, dense: torch.Tensor, rows: torch.Tensor, spread: float, backend: str
) -> Failure | None:
    """Tiles, the largest weights, entropy and mass received are those of the table."""
    trial = scene.trial
    if scene.parts.aggregate.random and not trial.is_soft:
        return None
    middle, k = slice(trial.queries // 3, trial.queries), min(2, trial.keys)
    columns = slice(trial.keys // 4, max(1, trial.keys // 4, 3 * trial.keys // 4))
    summary = found.weights.summary(k)
    entropy = torch.special.entr(dense).sum(-1)
    loss = 4 * spread * max(1.0, math.log(1 / max(spread, 1e-300)))  # the slope of −w log w where w is next to nothing
    pairs = {
        "tile": (found.weights.tile(middle, columns), dense[..., middle, columns], spread, rows[..., middle]),
        "top": (summary.top.weights, dense.topk(k, -1).values, spread, rows),
        "entropy": (summary.entropy[..., None], entropy[..., None], loss * max(1.0, float(entropy.max())), rows),
    }
    if bool(rows.all()):
        pairs["received"] = summary.received[..., None], dense.sum(-2)[..., None], trial.queries * spread, None
    for name, (answer, true, allowed, chosen) in pairs.items():
        if answer.shape != true.shape:
            return Failure(name, backend, f"shape {tuple(answer.shape)} for {tuple(true.shape)}")
        error = worst(answer, true, chosen)
        if not error <= allowed:
            return Failure(name, backend, f"error {error:.2e} against dense(), allowed {allowed:.2e}")
    return None


def _call(scene: Scene, tensors: Tensors) -> torch.Tensor:
    return verify.run(scene.parts, tensors, _one_backend(scene)).output


def _one_backend(scene: Scene) -> Backend:
    return "auto" if scene.trial.backend == "all" else scene.trial.backend  # type: ignore[return-value]


def under(check: Callable[[Scene], Failure | None]) -> Callable[[Scene], Failure | None]:
    """The check of a transform: a refusal in our own words is an answer, any other exception is none."""

    def checked(scene: Scene) -> Failure | None:
        try:
            return check(scene)
        except RegardError:
            return None
        except Exception as error:
            return Failure("raises", _one_backend(scene), first_line(error))

    return checked


def check_vmap(scene: Scene) -> Failure | None:
    """Mapping over a batch is calling for each item."""
    stacked = [torch.stack([tensor, -tensor]).detach() for tensor in scene.clean]
    found = torch.func.vmap(lambda *tensors: _call(scene, tensors))(*stacked)
    single = torch.stack([_call(scene, [tensor[index] for tensor in stacked]) for index in range(2)])
    allowed = 2 * scene.allowed(scene.slack.output if scene.slack else 0.0, single, "sdpa")
    error = worst(found, single)
    return None if error <= allowed else Failure("vmap", _one_backend(scene), f"error {error:.2e}")


def _loss(output: torch.Tensor) -> torch.Tensor:
    return verify._mixed(output, torch.Generator().manual_seed(3))


def _worst_slope(pairs: Iterable[tuple[torch.Tensor | None, torch.Tensor | None]]) -> float:
    some = [pair for pair in pairs if any(tensor is not None and tensor.numel() for tensor in pair)]
    return verify.worst(verify.difference(found, true) for found, true in some)


def check_func_grad(scene: Scene) -> Failure | None:
    """torch.func.grad gives the gradients of the definition."""
    slopes = torch.func.grad(lambda *tensors: _loss(_call(scene, tensors)), argnums=(0, 1, 2))(*scene.clean)
    error = _worst_slope(zip(slopes, scene.true.gradients[:3], strict=True))
    return None if error <= verify.GRADIENT else Failure("func-grad", _one_backend(scene), f"error {error:.2e}")


def check_second(scene: Scene) -> Failure | None:
    """Second derivatives are those of the definition."""

    def second(backend: Backend) -> list[torch.Tensor | None]:
        output = verify.run(scene.parts, scene.clean, backend).output
        slopes = torch.autograd.grad(_loss(output), scene.clean, create_graph=True, allow_unused=True)
        total = sum(_loss(slope) for slope in slopes if slope is not None and slope.requires_grad)
        if not isinstance(total, torch.Tensor):
            return [None] * 3
        return list(torch.autograd.grad(total, scene.clean, allow_unused=True))

    try:
        true = second("eager")
    except NotImplementedError:
        return None
    error = _worst_slope(zip(second(_one_backend(scene)), true, strict=True))
    return None if error <= 1e-7 else Failure("second", _one_backend(scene), f"error {error:.2e}")


def check_autocast(scene: Scene) -> Failure | None:
    """Under autocast no backend errs more than the definition does under autocast."""
    true = scene.true.attended.output
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = _call(scene, scene.clean)
        slack = 0.0
        for factor in CLONES:
            near = [(tensor * factor).detach() for tensor in scene.clean]
            base = verify.run(scene.parts, near, "eager").output
            with torch.autocast("cpu", enabled=False):
                slack = max(slack, worst(base, truth_of(scene.parts, near, 0.0).attended.output))
    allowed = 2 * (slack + torch.finfo(torch.bfloat16).eps * float(true.abs().max() if true.numel() else 0.0))
    error = worst(found, true)
    return None if error <= allowed else Failure("autocast", _one_backend(scene), f"error {error:.2e} > {allowed:.2e}")


def check_compile(scene: Scene) -> Failure | None:
    """A full graph computes the same."""
    torch._dynamo.reset()
    score, bias, mask, normalizer, aggregate = scene.parts
    given = {"score": score, "bias": bias, "mask": mask, "normalizer": normalizer, "aggregate": aggregate}
    compiled = torch.compile(lambda *t: attend(*t, **given).output, fullgraph=True, backend="aot_eager")
    torch.default_generator.manual_seed(verify.SEED)
    output, true = compiled(*scene.dirty), scene.true.attended.output
    allowed = 2 * scene.allowed(scene.slack.output if scene.slack else 0.0, true, "sdpa")
    error = worst(output, true, scene.rows)
    return None if error <= allowed else Failure("compile", "auto", f"error {error:.2e}, allowed {allowed:.2e}")


def check_fake(scene: Scene) -> Failure | None:
    """Tensors without memory give a tensor without memory, of the right shape, and never the end of the process."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fakes = [mode.from_tensor(tensor.detach()) for tensor in scene.clean]
        found = _call(scene, fakes)
    same = found.shape == scene.true.attended.output.shape
    return None if same else Failure("fake", _one_backend(scene), f"shape {tuple(found.shape)}")


TRANSFORMS: dict[str, Callable[[Scene], Failure | None]] = {
    "vmap": under(check_vmap),
    "func-grad": under(check_func_grad),
    "second": under(check_second),
    "autocast": under(check_autocast),
    "compile": under(check_compile),
    "fake": under(check_fake),
}
