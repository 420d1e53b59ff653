"""What was measured, and how it is kept: one JSON file for each claim."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "results"
ASIDE = ROOT / "build" / "benchmarks"  # results that are not for the tables
Unit = Literal["s", "MB"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender: seconds or megabytes, with quartiles; `over` where it was stopped at that.

    `difference` is how far its numbers are from ours, relative to the largest of ours.
    """

    name: str
    median: float
    low: float
    high: float
    runs: int
    difference: float | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold, and what came out."""

    says: str
    value: float
    low: float
    high: float
    sense: Literal["least", "most"]
    bound: float
    unit: Literal["×", "MB", "s"] = "×"

    @property
    def holds(self) -> bool:
        """Whether it does."""
        return self.value >= self.bound if self.sense == "least" else self.value <= self.bound


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: ours first among the entries."""

    name: str
    unit: Unit
    entries: list[Entry]
    checks: list[Check]
    missing: dict[str, str] = field(default_factory=dict)
    limit: str = ""
    measured: str = ""  # time or peak memory, by the unit, if it does not say otherwise

    @property
    def holds(self) -> bool:
        """Whether every check does."""
        return all(check.holds for check in self.checks)


@dataclass(frozen=True, slots=True)
class Point:
    """One length of a curve."""

    length: int
    seconds: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class CurveResult:
    """One backend's growth: the points, and the slopes of their logarithms."""

    backend: str
    backward: bool
    points: list[Point]
    time_exponent: float
    memory_exponent: float


@dataclass(frozen=True, slots=True)
class Setting:
    """Where, when and how it was measured. `others` is how many cores other processes kept busy meanwhile."""

    processor: str
    cores: int
    system: str
    python: str
    torch: str
    threads: int
    load: float
    others: float
    date: str
    commit: str
    quick: bool
    vectors: str = ""  # the widest that torch used, AVX2 or AVX512; not known of older results

    @property
    def quiet(self) -> bool:
        """Whether the machine had nothing else to do."""
        return self.others <= 0.5


@dataclass(frozen=True, slots=True)
class Result:
    """All of a claim."""

    claim: str
    title: str
    setting: Setting
    cases: list[CaseResult] = field(default_factory=list)
    curves: list[CurveResult] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every check of every case does."""
        return all(case.holds for case in self.cases)


def save(result: Result, folder: Path) -> Path:
    """Write down a claim."""
    return write(_round_values(asdict(result)), folder / f"{result.claim}.json", indent=2)


def write(values: dict[str, Any], path: Path, indent: int = 1) -> Path:
    """Write JSON in one step: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as file:
        json.dump(values, file, indent=indent, ensure_ascii=False)
        file.write("\n")
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
    return path


def load(path: Path) -> Result:
    """Read it again."""
    found = json.loads(path.read_text(encoding="utf-8"))
    cases = [
        CaseResult(
            case["name"],
            case["unit"],
            [Entry(**entry) for entry in case["entries"]],
            [Check(**check) for check in case["checks"]],
            case["missing"],
            case.get("limit", ""),
            case.get("measured", ""),
        )
        for case in found["cases"]
    ]
    curves = [
        CurveResult(**{**curve, "points": [Point(**point) for point in curve["points"]]}) for curve in found["curves"]
    ]
    return Result(found["claim"], found["title"], Setting(**found["setting"]), cases, curves)


def _round_values(value: Any) -> Any:
    """Return numbers with five digits: more would only be noise in the history."""
    if isinstance(value, dict):
        return {name: _round_values(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_round_values(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
