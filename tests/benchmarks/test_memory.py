"""Peak memory by a fresh process."""

from pathlib import Path

import pytest
import torch

from benchmarks import memory

needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")


@needs_proc
def test_the_mark_rises_by_what_is_allocated() -> None:
    numbers = 2**24
    torch.ones(numbers).sum()  # threads and their stacks exist from here on
    before = memory._reset_peak()
    held = torch.ones(numbers)
    rose = memory._read_peak() - before
    assert 0.9 * 4 * numbers < rose < 1.3 * 4 * numbers
    del held


@needs_proc
def test_a_peak_is_seen_after_it_is_over() -> None:
    before = memory._reset_peak()
    torch.ones(2**24).sum()
    assert memory._read_peak() - before > 0.9 * 2**26


@needs_proc
def test_a_fresh_process_weighs() -> None:
    found = memory.measure_memory(memory.MemoryRequest("additive_memory", 1, "regard", tiny=True))
    assert not found.over
    assert 0 <= found.megabytes < 100


@needs_proc
def test_a_greedy_peer_is_stopped_at_its_limit() -> None:
    found = memory.measure_memory(memory.MemoryRequest("additive_memory", 2, "textbook", limit=256))
    assert found == (256, True)
