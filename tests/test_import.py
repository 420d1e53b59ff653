"""What importing costs, and what it offers."""

import subprocess
import sys

import regard

PROBE = "import sys; import {}; print('torch' in sys.modules)"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_neither_the_package_nor_the_command_line_waits_for_torch() -> None:
    assert run(PROBE.format("regard")) == "False"
    assert run(PROBE.format("regard.cli")) == "False"


def test_every_public_name_is_there_and_no_other() -> None:
    assert regard.__all__ == sorted(regard.__all__)
    assert all(getattr(regard, name) is not None for name in regard.__all__)
    assert set(regard.__all__) == set(regard._HOME_OF)
    assert set(regard.__all__) <= set(dir(regard))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(regard, "no_such_thing")
