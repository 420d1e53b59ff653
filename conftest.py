"""Settings of every test and doctest, in src and in tests."""

import signal
from typing import Any

import pytest
import torch
from hypothesis import register_random, settings


class TorchRandom:
    """torch's generator in the shape Hypothesis wants, so that a failing example fails again."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


torch_random = TorchRandom()  # Hypothesis keeps only a weak reference
register_random(torch_random)

# No deadline: the first call of a kernel may compile it, and machines are shared.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)  # pytest --hypothesis-profile=explore
settings.load_profile("repeatable")


# Tests in the background are started to ignore Ctrl-C, and so would be the commands that they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _same_start_for_every_test(doctest_namespace: dict[str, Any]) -> None:
    """Start from one seed whatever ran before, and let doctests say `torch` without an import line."""
    torch.manual_seed(0)
    doctest_namespace["torch"] = torch
