"""`regard bench`."""

import pytest

from regard.cli import bench


def test_every_pair_runs() -> None:
    pairs = list(bench._build_pairs())
    assert len({(pair.what, pair.backward) for pair in pairs}) == len(pairs)
    for pair in pairs:
        pair.ours()
        pair.theirs()


def test_the_table_has_a_ratio_for_each_pair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = bench.BenchmarkPair("a sum", "the same", lambda: sum(range(9)), lambda: sum(range(9)), False)
    monkeypatch.setattr(bench, "_build_pairs", lambda: [pair])
    bench.bench(seconds=1e-9)
    lines = capsys.readouterr().out.splitlines()
    assert "threads on" in lines[0]
    assert lines[1].split("  ")[0] == "times faster"
    assert "a sum, forward" in lines[2]
