"""Who computes: our own loops, and torch where there is no compiler."""

import pytest

from regard.compute.kernels import alignment, native, simplex_rows


@pytest.fixture(params=["native", "torch"])
def who(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both who compute rows and recurrences, so that each claim is made of each."""
    if request.param == "torch":
        for module in (simplex_rows, alignment):
            monkeypatch.setattr(module, "find_library", lambda *_: None)
    elif native.load_library() is None:
        pytest.skip("no compiler here")
    return str(request.param)
