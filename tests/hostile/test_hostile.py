"""A few hundred damaged files and requests in a process whose memory is measured; `make hostile` runs many more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is watched through /proc")
@pytest.mark.timeout(600)  # of a hang; on a machine that is busy it takes a while
def test_damaged_files_and_requests_end_in_sentences() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", "300", "2"],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "300 cases" in done.stdout
