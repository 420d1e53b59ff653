"""Ours and the peers', grouped by what they compute.

Every contender of a problem draws the same numbers from the same seed and has the same parameters, so that the
results can be compared before the times are. What a peer needs is imported inside its function: where it is not
installed, the others still run.
"""
