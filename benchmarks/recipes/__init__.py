"""Real-data results of the tasks: a recipe each, run through the public commands, recorded in `benchmarks/results`."""
