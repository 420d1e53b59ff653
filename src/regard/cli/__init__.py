"""The command line. Only Python itself is imported before Ctrl-C is caught, and torch only when a command runs."""

import os
import sys

from regard.cli.interruption import INTERRUPTED, Interruption


def main() -> None:
    """Run a command; Ctrl-C at any moment ends it with one sentence and exit code 130."""
    interruption = Interruption(sys.argv[1:])
    try:
        try:
            interruption.listen()
            from regard.cli.commands import run_command

            run_command()
            interruption.code = 0
        except SystemExit as ending:
            interruption.code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
            raise
    except KeyboardInterrupt as error:
        interruption.finish(error)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            os._exit(INTERRUPTED)  # under torchrun: the interpreter's way out may wait for processes that are gone
        sys.exit(INTERRUPTED)
