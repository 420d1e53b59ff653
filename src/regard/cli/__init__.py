"""The command line. One file a command; nothing here imports torch before a command runs."""

import os
import sys

from cyclopts import App, CycloptsError

from regard import __version__
from regard.errors import RegardError

app = App(
    name="regard",
    version=__version__,
    help="Attention mechanisms: every score, mask, normalizer and reading under one operator.",
    help_format="plaintext",
)
app.command("regard.cli.list:show", name="list", help="Show the catalog, by family.")
app.command("regard.cli.explain:explain", help="Say what a mechanism is, how it is computed and what that costs.")
app.command("regard.cli.verify:verify", help="Compare every code path with the definition in float64.")
app.command("regard.cli.bench:bench", help="Time the main mechanisms against plain torch on this machine.")
app.command("regard.cli.demo:demo", help="Fit a curve by attention and draw what it looked at.")


def main() -> None:
    """Run a command; what the user can mend is one sentence and exit code 2."""
    try:
        app(exit_on_error=False, print_error=False, result_action="return_value")
    except (RegardError, CycloptsError) as error:
        if os.environ.get("REGARD_TRACEBACK"):
            raise
        print(f"regard: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("regard: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever was reading has gone; writing more would only repeat the error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
