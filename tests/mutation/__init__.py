"""One line changed at a time, to see whether the tests notice: `python -m tests.mutation --count 150`."""
