"""Which files are changed, and which tests are to notice."""

import re
from pathlib import Path

ALGEBRA = ("scores", "biases", "masks", "normalizers", "aggregates.py", "terms.py", "pairs.py", "parts.py")
COMPUTATION = (
    "numerics",
    "lowering",
    "backends",
    "operator.py",
    "shield.py",
    "weights.py",
    "checks.py",
    "definition.py",
)
SEARCH = ("models/search",)
FILES = tuple(f"training/{name}.py" for name in ("checkpoint", "storage", "folder", "averaging"))
RECORDINGS = ("recording", "observing")
CONTRACTS = ("tests/test_weights.py", "tests/test_checks.py", "tests/lowering", "tests/fuzz/test_fuzz.py")
CONTRACTS += ("tests/backends", "tests/contracts")
TIMED = ("tests/backends/test_overhead.py", "tests/backends/test_memory.py")  # a machine at work fails them by itself
# Beside the tests of the same name: those of every file in the folder.
AROUND = {
    **dict.fromkeys(ALGEBRA + COMPUTATION, CONTRACTS),
    **dict.fromkeys(SEARCH, ("tests/models/test_search.py", "tests/models/test_watching.py")),
    **dict.fromkeys(FILES, ("tests/training",)),
    **dict.fromkeys(RECORDINGS, ("tests/recording", "tests/observing", "tests/measure", "tests/draw/test_report.py")),
}


def files(root: Path) -> list[str]:
    """The files that are changed, as paths inside `src/regard`."""
    source = root / "src/regard"
    chosen = [source / name for name in AROUND]
    found = [path for place in chosen for path in ([place] if place.suffix else sorted(place.rglob("*.py")))]
    return [path.relative_to(source).as_posix() for path in found if path.name != "__init__.py"]


def tests_of(root: Path, file: str) -> list[str]:
    """The tests that are to notice a change of that file, the nearest first: its own, its users', those around."""
    place, stem = Path(file).parent, Path(file).stem
    folder = root / "tests" / place
    nearest = [root / f"src/regard/{file}", *folder.glob(f"test_{stem}*.py")]
    for user in users_of(root, file):
        nearest += folder.glob(f"test_{user}*.py")
    if len(place.parts) > 1:  # such as numerics/native
        nearest += folder.parent.glob(f"test_{place.name}*.py")
    around = next(tests for name, tests in AROUND.items() if file == name or file.startswith(f"{name}/"))
    found = [path.relative_to(root).as_posix() for path in nearest]
    return list(dict.fromkeys([*found, *around]))


def users_of(root: Path, file: str) -> list[str]:
    """The files beside it that import it."""
    module = "regard." + file.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    imports = re.compile(rf"from {re.escape(module)} import|from {re.escape(package)} import [^\n]*\b{name}\b")
    beside = (root / "src/regard" / file).parent.glob("*.py")
    return sorted(path.stem for path in beside if imports.search(path.read_text()))
