"""Random attentions against the definition in float64: `python -m tests.fuzz --minutes 60`."""
