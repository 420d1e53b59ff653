"""Which files are changed, and which tests are expected to notice."""

import re
from pathlib import Path

# Checks of other code, types and names: a change of them changes no result.
EXCLUDED = ("algebra/catalog.py", "algebra/shapes.py")
EXCLUDED += tuple(f"compute/{name}.py" for name in ("claims", "timing", "verification", "watchers"))
RUN_FILES = tuple(f"training/{name}.py" for name in ("average", "checkpoint", "run_folder", "storage"))
CONTRACTS = ("tests/compute", "tests/fuzz/test_fuzz.py", "tests/contracts")
INSPECTION = ("tests/inspect/recording", "tests/inspect/observe", "tests/inspect/measure")
# A busy machine fails these by itself.
TIMED = ("tests/compute/backends/test_overhead.py", "tests/compute/backends/test_memory.py")
# The files that are changed, each with the tests that run beside those of the same name.
SURROUNDING_TESTS = {
    "algebra": CONTRACTS,
    "compute": CONTRACTS,
    "models/kernels": ("tests/models",),
    "models/search": ("tests/models/test_search.py", "tests/models/test_search_tree.py"),
    **dict.fromkeys(RUN_FILES, ("tests/training",)),
    "inspect/recording": (*INSPECTION, "tests/inspect/draw/test_report.py"),
    "inspect/observe": (*INSPECTION, "tests/inspect/draw/test_report.py"),
}


def list_files(root: Path) -> list[str]:
    """Return the files that are changed, as paths inside `src/regard`."""
    source = root / "src/regard"
    paths = [source / name for name in SURROUNDING_TESTS]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise FileNotFoundError(f"{missing} of tests/mutation/coverage.py: moved or renamed?")
    files = [file for path in paths for file in ([path] if path.suffix else sorted(path.rglob("*.py")))]
    names = [file.relative_to(source).as_posix() for file in files if file.name != "__init__.py"]
    return [name for name in names if name not in EXCLUDED]


def list_tests(root: Path, file: str) -> list[list[str]]:
    """Return the tests that should notice a change of a file, in two steps: the nearest, which take seconds; the rest.

    The nearest are its doctests, the tests of its name, those of the modules beside it that import it, and all that
    import it themselves.
    """
    package, stem = Path(file).parent, Path(file).stem
    folder = root / "tests" / package
    nearest = [root / f"src/regard/{file}", *folder.glob(f"test_{stem}*.py")]
    for user in list_users(root, file):
        nearest += folder.glob(f"test_{user}*.py")
    # That of the folder, such as tests/compute/kernels/test_native.py for compute/kernels/native.
    nearest += folder.parent.glob(f"test_{package.name}*.py")
    imports = compile_imports(file)
    nearest += [path for path in sorted((root / "tests").rglob("test_*.py")) if imports.search(path.read_text())]
    near = list(dict.fromkeys(path.relative_to(root).as_posix() for path in nearest))
    rest = next(tests for name, tests in SURROUNDING_TESTS.items() if file == name or file.startswith(f"{name}/"))
    return [[name for name in near if name not in TIMED], list(rest)]


def compile_imports(file: str) -> re.Pattern[str]:
    """Return a pattern of the lines that import a file of `src/regard`."""
    module = "regard." + file.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    return re.compile(rf"from {re.escape(module)} import|from {re.escape(package)} import [^\n]*\b{name}\b")


def list_users(root: Path, file: str) -> list[str]:
    """Return the modules in the same folder that import a file."""
    imports = compile_imports(file)
    siblings = (root / "src/regard" / file).parent.glob("*.py")
    return sorted(path.stem for path in siblings if imports.search(path.read_text()))
