"""Change one line at a time and see whether the tests notice: `python -m tests.mutation --count 150`."""
