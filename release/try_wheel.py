"""Install a wheel into an empty environment without a compiler, and see that it works as the checkout does.

    python release/try_wheel.py dist/regard-….whl dist/regard-….tar.gz

Of the wheel: `regard verify`, the demo, the three instruction sets, and the speed of the kernels beside those that the
checkout compiles. Of the sdist, in another environment: that it builds, and compiles its kernels when they are first
used. Nothing of the checkout is used by the environments: they have a folder, a cache and a path of their own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 3_000_000  # bytes of a wheel
SLOWER = 1.25  # the packaged kernels may take this much longer than those that were compiled for this very processor
TIMES = """
import time, torch
from regard import Additive, Sparsemax, attend
from regard.compute.kernels import native
torch.set_num_threads(1)
query, key, value = (torch.randn(4, 256, 128) for _ in range(3))
score, table = Additive(128), torch.randn(512, 512)
def measure(run):
    run()
    times = []
    for _ in range(15):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return 1000 * min(times)
with torch.no_grad():
    print(measure(lambda: attend(query, key, value, score=score).output), end=" ")
    print(measure(lambda: attend(query, key, value, normalizer=Sparsemax()).output), end=" ")
library = native.get_loaded()
print(library.path.name + library.suffix if library else "none")
"""


def main(wheel: Path, sdist: Path) -> int:
    """Try both; the first thing that is wrong ends it."""
    check(wheel.stat().st_size <= LARGEST, f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory(prefix="regard-wheel-") as folder:
        home = Path(folder)
        install(wheel, home)
        run(home, "regard", "verify")
        run(home, "regard", "demo", "--output", "regard-demo.png")
        check((home / "regard-demo.png").stat().st_size > 10_000, "the demo drew its picture")
        compare_sets(home)
        compare_speed(home)
    with tempfile.TemporaryDirectory(prefix="regard-sdist-") as folder:
        try_sdist(sdist, Path(folder))
    return 0


def try_sdist(sdist: Path, home: Path) -> None:
    """See that it builds and installs, and that it compiles its kernels with the compiler of this machine."""
    install(sdist, home)
    compiler = shutil.which("c++")
    check(compiler is not None, f"this machine has a compiler: {compiler}")
    with_compiler = {"PATH": f"{home / 'env' / 'bin'}:{os.environ['PATH']}"}
    said = run(home, "python", "-c", TIMES, **with_compiler)
    check(said.split()[-1] == "library.so", "the sdist compiled its kernels when they were first used")
    run(home, "regard", "verify", **with_compiler)


def check(fact: bool, what: str) -> None:
    """Print what was looked at, and stop if it is not so."""
    print(f"{'ok   ' if fact else 'FAIL '} {what}", flush=True)
    if not fact:
        raise SystemExit(1)


def install(package: Path, home: Path) -> None:
    """Make the environment; pip alone sees the rest of the machine."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "env")], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "env" / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), f"{package.resolve()}[plot,text]"], check=True)
    check(shutil.which("c++", path=str(home / "env" / "bin")) is None, "the environment has no compiler")


def run(home: Path, *command: str, **more: str) -> str:
    """Run a command of the environment, with its own programs on the path and no others, and return what it printed."""
    kept = {name: os.environ[name] for name in ("LANG", "OMP_NUM_THREADS") if name in os.environ}
    own = home / "env" / "bin"
    environment = kept | {"PATH": str(own), "HOME": str(home), "REGARD_CACHE": str(home / "cache")} | more
    arguments = ["-W", "error::RuntimeWarning", str(own / "regard")] if command[0] == "regard" else []
    done = subprocess.run(
        [str(own / "python"), *arguments, *command[1:]],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    last = done.stdout.strip().splitlines()[-1:] or [""]
    check(done.returncode == 0, f"{' '.join(command[:2])}: {last[0]}")
    return done.stdout


def compare_sets(home: Path) -> None:
    """See that each instruction set is right on its own."""
    for name in ("plain", "avx2", "avx512"):
        run(home, "regard", "verify", REGARD_INSTRUCTIONS=name)
        run(home, "python", "-c", TIMES, REGARD_INSTRUCTIONS=name)


def compare_speed(home: Path) -> None:
    """Time the kernels of the wheel, those that the checkout compiles, and torch without any, in turns."""
    here = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    best: dict[str, list[float]] = {}
    for _ in range(3):
        said = {
            "the wheel": run(home, "python", "-c", TIMES),
            "the checkout": subprocess.run(
                [sys.executable, "-c", TIMES], env=here, stdout=subprocess.PIPE, text=True, check=True
            ).stdout,
            "no kernels": run(home, "python", "-c", TIMES, REGARD_COMPILER="none"),
        }
        for who, line in said.items():
            times = [float(each) for each in line.split()[:-1]]
            best[who] = [min(pair) for pair in zip(best.get(who, times), times, strict=True)]
    for place, what in enumerate(("additive attention", "sparsemax")):
        print(what + ": " + ", ".join(f"{who} {times[place]:.2f} ms" for who, times in best.items()))
        check(best["the wheel"][place] <= SLOWER * best["the checkout"][place], f"{what} is as fast as in the checkout")


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
