"""Every performance claim, measured: `python -m benchmarks`, after `python -m benchmarks.peers`.

- `claims/`: one file for each claim, with its sizes, its contenders and its bounds;
- `contenders/`: ours and the peers', with the same numbers to compute from;
- `results/`: what was measured, as JSON; `python -m benchmarks.report` makes the tables from it.
"""
