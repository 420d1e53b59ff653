"""A tiny call costs little: counted in Python calls, which no other process on the machine can change."""

import json
import subprocess
import sys

COUNT = """
import json, sys, torch
from regard import Causal, attend

query = torch.randn(1, 2, 3, 4)

def count(**options):
    for _ in range(3):
        attend(query, query, query, **options)
    calls = 0
    def profile(frame, event, argument):
        nonlocal calls
        calls += event == "call"
    sys.setprofile(profile)
    attend(query, query, query, **options)
    sys.setprofile(None)
    return calls

print(json.dumps([count(), count(mask=Causal())]))
"""


def test_a_cached_plan_leaves_a_few_dozen_calls() -> None:
    """Some 50 of 0.3 µs are within the 40 µs that the operator may add to a bare kernel; lowering anew, 60 more."""
    run = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    plain, causal = json.loads(run.stdout)
    assert plain <= 70
    assert causal <= 90
