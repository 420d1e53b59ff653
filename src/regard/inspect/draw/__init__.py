"""Pictures: matplotlib figures (extra `plot`), never through pyplot, so that no state is shared."""
