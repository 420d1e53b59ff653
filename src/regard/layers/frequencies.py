"""Frequencies of positions, and how they are scaled for texts longer than those of the training."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong


def frequencies(dim: int, *, base: float | Tensor = 10000.0) -> Float[Tensor, " half"]:
    r"""Return $\omega_j = b^{-2j/d}$ for $j = 0 \dots d/2 - 1$, with $b$ = `base` and $d$ = `dim`, in float64.

    >>> frequencies(4, base=100.0).tolist()
    [1.0, 0.1]
    """
    if dim < 2 or dim % 2:
        raise wrong("dim", dim, "an even number, because sine and cosine come in pairs", f"use {dim + dim % 2 or 2}")
    device = base.device if isinstance(base, Tensor) else None
    return base ** -(torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim)


class FrequencyScaling(ABC):
    """A way to scale the frequencies of `Rotary` for texts that are longer than those of the training."""

    dynamic: ClassVar[bool] = False  # whether the frequencies depend on the length

    @abstractmethod
    def scale(self, dim: int, base: float, length: int | Tensor) -> Float[Tensor, " half"]:
        """Return the frequencies for `dim` coordinates and texts of this length, in float64."""

    @property
    def amplitude(self) -> float:
        """The number that rotated queries and keys are multiplied by."""
        return 1.0


@dataclass(frozen=True, slots=True)
class LinearScaling(FrequencyScaling):
    r"""Positions are divided by a number: $\omega'_j = \omega_j / s$ with $s$ = `factor`. Chen et al. 2023, eq. 4.

    >>> LinearScaling(2.0).scale(4, 100.0, 9).tolist()
    [0.5, 0.05]
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def scale(self, dim: int, base: float, length: int | Tensor) -> Float[Tensor, " half"]:
        return frequencies(dim, base=base) / self.factor


@dataclass(frozen=True, slots=True)
class NtkScaling(FrequencyScaling):
    r"""Slow frequencies are divided by a number and fast ones are kept: *NTK-aware*, by a larger base.

    $$ b' = b\, s^{d / (d - 2)} $$

    with $s$ = `factor`. Peng et al. 2023 (YaRN), eq. 16.

    >>> NtkScaling(2.0).scale(4, 100.0, 9).tolist()
    [1.0, 0.05]
    """

    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def scale(self, dim: int, base: float, length: int | Tensor) -> Float[Tensor, " half"]:
        return frequencies(dim, base=base * self.factor ** _compute_exponent(dim))


@dataclass(frozen=True, slots=True)
class DynamicNtkScaling(FrequencyScaling):
    r"""`NtkScaling` by as much as the length of the text asks for, and none up to the length of the training.

    $$ b' = b \left( s \frac{\max(n, n_0)}{n_0} - (s - 1) \right)^{d / (d - 2)} $$

    with $s$ = `factor`, $n_0$ = `trained` and $n$ = the last position + 1. Peng et al. 2023 (YaRN), §3.3, and
    transformers' `dynamic`. Keys that are cached keep the frequencies of the step that rotated them, as there.

    >>> DynamicNtkScaling(1.0, trained=8).scale(4, 100.0, 16).tolist()
    [1.0, 0.05]
    """

    factor: float
    trained: int
    dynamic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_trained(self.trained)

    def scale(self, dim: int, base: float, length: int | Tensor) -> Float[Tensor, " half"]:
        longest = length.double().clamp_min(self.trained) if isinstance(length, Tensor) else max(length, self.trained)
        stretch = self.factor * longest / self.trained - (self.factor - 1)
        return frequencies(dim, base=base * stretch ** _compute_exponent(dim))


@dataclass(frozen=True, slots=True)
class RampScaling(FrequencyScaling):
    """Frequencies that turn more than `fast` times in the training's length are kept, those below `slow` divided."""

    factor: float
    trained: int
    slow: float
    fast: float
    advice: ClassVar[str]

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_trained(self.trained)
        if not 0 < self.slow < self.fast:
            raise wrong("slow", self.slow, f"above 0 and below fast={self.fast}", self.advice)


@dataclass(frozen=True, slots=True)
class YarnScaling(RampScaling):
    r"""Frequencies that turn often within the training's length are kept, those that turn rarely are divided: *YaRN*.

    $$ \omega'_j = (1 - \gamma_j) \frac{\omega_j}{s} + \gamma_j\, \omega_j, \qquad
    \gamma_j = 1 - \mathrm{clip}\!\left(\frac{j - j_\beta}{j_\alpha - j_\beta}, 0, 1\right), \qquad
    j_r = \frac{d}{2 \ln b} \ln \frac{n_0}{2 \pi r} $$

    with $s$ = `factor`, $n_0$ = `trained`, $\beta$ = `fast` and $\alpha$ = `slow` turns; $j_\beta$ is rounded down and
    $j_\alpha$ up, as the authors' program and transformers do. Queries and keys are multiplied by 0.1 ln s + 1
    (`amplitude`), which sharpens the softmax. Peng et al. 2023, eq. 17-22.
    """

    slow: float = 1.0
    fast: float = 32.0
    advice: ClassVar[str] = "use 1 and 32, as the paper does"

    def scale(self, dim: int, base: float, length: int | Tensor) -> Float[Tensor, " half"]:
        omega = frequencies(dim, base=base)
        fast, slow = (math.log(self.trained / (2 * math.pi * turns)) for turns in (self.fast, self.slow))
        first, last = (dim * one / (2 * math.log(base)) for one in (fast, slow))
        first, last = max(math.floor(first), 0), min(math.ceil(last), dim - 1)
        width = last - first or 0.001  # if both are one, the step is steep instead of undefined
        slowness = ((torch.arange(dim // 2, dtype=torch.float64) - first) / width).clamp(0, 1)
        return torch.lerp(omega, omega / self.factor, slowness)

    @property
    def amplitude(self) -> float:
        return 0.1 * math.log(self.factor) + 1 if self.factor > 1 else 1.0


@dataclass(frozen=True, slots=True)
class Llama3Scaling(RampScaling):
    r"""Frequencies are divided by a number if they turn less than `slow` times in the training's length.

    $$ \omega'_j = (1 - \gamma_j) \frac{\omega_j}{s} + \gamma_j\, \omega_j, \qquad
    \gamma_j = \mathrm{clip}\!\left(\frac{n_0 \omega_j / 2 \pi - \alpha}{\beta - \alpha}, 0, 1\right) $$

    with $s$ = `factor`, $n_0$ = `trained`, $\alpha$ = `slow` and $\beta$ = `fast` turns, between which they are mixed:
    Llama 3.1 (Grattafiori et al. 2024, §3.4), *NTK by parts* of Peng et al. 2023, eq. 17-18.
    """

    factor: float = 8.0
    trained: int = 8192
    slow: float = 1.0
    fast: float = 4.0
    advice: ClassVar[str] = "use 1 and 4, as Llama 3.1 does"

    def scale(self, dim: int, base: float, length: int | Tensor) -> Float[Tensor, " half"]:
        omega = frequencies(dim, base=base)
        turns = self.trained * omega / (2 * math.pi)
        return torch.lerp(omega / self.factor, omega, ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1))


# What transformers calls a kind of scaling and its numbers.
KINDS: dict[str, tuple[Callable[..., FrequencyScaling], dict[str, str]]] = {
    "linear": (LinearScaling, {"factor": "factor"}),
    "dynamic": (DynamicNtkScaling, {"factor": "factor", "trained": "original_max_position_embeddings"}),
    "yarn": (
        YarnScaling,
        {
            "factor": "factor",
            "trained": "original_max_position_embeddings",
            "fast": "beta_fast",
            "slow": "beta_slow",
        },
    ),
    "llama3": (
        Llama3Scaling,
        {
            "factor": "factor",
            "trained": "original_max_position_embeddings",
            "slow": "low_freq_factor",
            "fast": "high_freq_factor",
        },
    ),
}
OPTIONAL = ("beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor")
IGNORED = ("rope_type", "type", "rope_theta")


def read_scaling(settings: Mapping[str, Any]) -> float | FrequencyScaling:
    """Return the scaling that a model of transformers names in `rope_scaling` or `rope_parameters`.

    >>> read_scaling({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096})
    YarnScaling(factor=4.0, trained=4096, slow=1.0, fast=32.0)
    """
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "default":
        return 1.0
    if kind not in KINDS:
        raise wrong("scaling", f"rope_type {kind!r}", f"one of default, {', '.join(KINDS)}", "write a FrequencyScaling")
    build, names = KINDS[kind]
    lacking = [name for name in names.values() if name not in (*settings, *OPTIONAL)]
    unknown = [name for name in settings if name not in (*names.values(), *IGNORED)]
    if lacking or unknown:
        got = f"{kind} without {lacking[0]}" if lacking else f"{unknown[0]} of {kind}"
        fix = f"add it, or write {build.__name__}(…)" if lacking else f"write {build.__name__}(…) without it"
        raise wrong("scaling", got, f"{', '.join(names.values())}", fix)
    return build(**{own: settings[name] for own, name in names.items() if name in settings})


def _compute_exponent(dim: int) -> float:
    if dim < 4:
        raise wrong(
            "dim", dim, "at least 4, two frequencies, for a scaled base", "use LinearScaling, or more coordinates"
        )
    return dim / (dim - 2)


def _check_factor(factor: float) -> None:
    if not factor > 0:
        raise wrong("scaling", factor, "a number above 0", "use 4.0 for texts four times as long")


def _check_trained(trained: int) -> None:
    if trained < 1:
        raise wrong("trained", trained, "the length of the training's texts, 1 or more", "use 4096, say")
