"""Measure the claims: `python -m benchmarks [names …] [--quick]`. Let nothing else run meanwhile."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import peers, report
from benchmarks.claims import NAMES
from benchmarks.formats import format_check
from benchmarks.results import ASIDE, FOLDER, ROOT, Result, load
from regard.cli.machine import QUIET, measure_other_load


def main() -> int:
    """Measure, print, save; 0 if every bound holds, 1 if one does not, 2 if nothing could be measured."""
    given = parse()
    if given.list:
        print("\n".join(NAMES))
        return 0
    refusal = _explain_refusal(given)
    if refusal:
        print(f"benchmarks: {refusal}", file=sys.stderr)
        return 2
    folder = ASIDE if given.quick or given.tiny else FOLDER / "avx2" if given.avx2 else FOLDER
    failed = [name for name in given.names or NAMES if not _measure(name, folder, given)]
    if folder == FOLDER:
        report.write()
    if failed:
        print(f"\nnot as claimed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="claims to measure; all where none is given")
    parser.add_argument("--list", action="store_true", help="show the names")
    parser.add_argument("--quick", action="store_true", help="few rounds; the results go to build/, not to the tables")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, only to see that everything runs")
    parser.add_argument("--busy", action="store_true", help="measure on a busy machine too; the results say so")
    parser.add_argument("--avx2", action="store_true", help="as if the processor had no AVX-512; kept in results/avx2")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _explain_refusal(given: argparse.Namespace) -> str:
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        return f"names: got {', '.join(unknown)}, expected some of {', '.join(NAMES)}; fix: see --list"
    if not peers.is_installed():
        return "peers: got none, expected them in .venv-peers; fix: python -m benchmarks.peers"
    others = measure_other_load()
    if others > QUIET and not (given.busy or given.quick or given.tiny):
        fix = "stop what else is running, or say --busy (the results will be marked)"
        return f"machine: got {others:.1f} cores busy with other work, expected at most {QUIET}; fix: {fix}"
    return ""


def _measure(name: str, folder: Path, given: argparse.Namespace) -> bool:
    """Measure one claim in the peers' environment, and say what came out; false where it does not hold."""
    threads = str(given.threads)
    command = [str(peers.find_python()), "-m", "benchmarks.worker", name, str(folder), "--threads", threads]
    command += ["--quick"] * given.quick + ["--tiny"] * given.tiny
    print(f"\n{name}", flush=True)
    done = subprocess.run(command, cwd=ROOT, env=_build_environment(threads, avx2=given.avx2), check=False)
    if done.returncode:
        print(f"  failed with exit code {done.returncode}")
        return False
    result = load(folder / f"{name}.json")
    _show(result, judge=not given.tiny)
    if result.curves:
        # Imported here: the picture needs matplotlib, the measurements do not.
        from benchmarks.plot import draw

        draw(result, folder)
    return result.holds or bool(given.tiny)


# What torch, oneDNN, MKL, CTranslate2 and our own kernels read.
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "CT2_FORCE_CPU_ISA": "AVX2",
    "REGARD_CXXFLAGS": "-march=haswell",
}


def _build_environment(threads: str, *, avx2: bool) -> dict[str, str]:
    """Fixed threads, this tree's regard, peers that neither call home nor warn about it."""
    fixed = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return {
        **os.environ,
        **fixed,
        "PYTHONPATH": path,
        "KERAS_BACKEND": "torch",
        "HF_HUB_OFFLINE": "1",
        **(AVX2 if avx2 else {}),
    }


def _show(result: Result, *, judge: bool) -> None:
    for case in result.cases:
        print(f"  {case.name}")
        for check in case.checks:
            print(f"    {format_check(check)}{'' if check.holds or not judge else '   NOT AS CLAIMED'}")
        for name, reason in case.missing.items():
            print(f"    without {name}: {reason}")
    for curve in result.curves:
        slopes = f"time n^{curve.time_exponent:.2f}, memory n^{curve.memory_exponent:.2f}"
        print(f"  {curve.backend}: {slopes} up to {curve.points[-1].length:,}")
    if not result.setting.quiet:
        print(f"  BUSY MACHINE: others kept {result.setting.others:.1f} cores busy; these times are not to be trusted")


if __name__ == "__main__":
    sys.exit(main())
