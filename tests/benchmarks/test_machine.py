"""What else the machine does."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard import machine


def test_our_own_work_is_not_others_work() -> None:
    watch = machine.Watch()
    own = os.times()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    spent = os.times().user - own.user
    foreign = machine._busy_seconds()
    assert foreign is None or watch.others() <= os.cpu_count() - spent / 0.5 + 0.5  # type: ignore[operator]


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not count its ticks")
def test_others_are_seen() -> None:
    spin = "import time\nend = time.monotonic() + 600\nwhile time.monotonic() < end: pass"
    other = subprocess.Popen([sys.executable, "-c", spin])
    try:
        time.sleep(0.2)
        assert machine.busy_elsewhere(0.5) > 0.1  # of a core, on a machine that may have other work still
    finally:
        other.kill()
        other.wait()


def test_a_machine_is_described_without_its_name() -> None:
    found = machine.describe()
    assert found.cores >= 1
    assert found.torch.startswith("2.")
    assert os.uname().nodename not in " ".join(map(str, found)) or os.uname().nodename in ("", "localhost")
