"""The commands, one file each; nothing here imports torch before a command runs."""

import contextlib
import os
import sys
from errno import EDQUOT, ENOSPC
from typing import Any

from cyclopts import App, CycloptsError

from regard import __version__
from regard.cli.output import check_streams, discard_output, print_error
from regard.errors import RegardError, format_message, missing_package

app = App(
    name="regard",
    version=__version__,
    help="Attention mechanisms: every score, mask, normalizer and aggregate under one operator.",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # `main` has a sentence for it
)
app.command("regard.cli.list:show", name="list", help="Show the catalog, by family.")
app.command("regard.cli.explain:explain", help="Say what a mechanism is, how it is computed and what that costs.")
app.command("regard.cli.verify:verify", help="Compare every code path with the definition in float64.")
# These read their own flags, which depend on the task.
OWN_FLAGS: dict[str, Any] = {"help_flags": [], "version_flags": []}
app.command("regard.cli.train:train", help="Train a model for a task: regard train lists them.", **OWN_FLAGS)
app.command(
    "regard.cli.run_list:show_runs", name="runs", help="List runs: task, data, best value, age, training or not."
)
app.command("regard.cli.resume:resume", help="Go on with a run from its last checkpoint.")
app.command("regard.cli.dispatch:evaluate", help="Say how good a run is on held-out data.", **OWN_FLAGS)
app.command("regard.cli.dispatch:predict", help="Ask a run about one thing.", **OWN_FLAGS)
app.command("regard.cli.translate:translate", help="Translate standard input or files.")
app.command("regard.cli.predict:transcribe", help="Write down what is said in a sound file.")
app.command("regard.cli.data:app", name="data", help="Show the data sets that tasks know by name, and fetch them.")
app.command("regard.cli.predict:answer", help="Answer a question about a text.")
app.command("regard.cli.predict:caption", help="Say what is in a photograph.")
app.command("regard.cli.predict:ask", help="Answer a question about an image.")
app.command("regard.cli.average:average", help="Average the weights of several checkpoints.")
app.command("regard.cli.export:export", help="Write a translator for other machines or programs.")
app.command("regard.cli.dispatch:show", help="Show where a run looked, in the terminal or as a picture.", **OWN_FLAGS)
app.command("regard.cli.serve:serve", help="Serve a page: translate, look, compare, and follow runs in progress.")
app.command("regard.cli.bench:bench", help="Time the main mechanisms against plain torch on this machine.")
app.command("regard.cli.compare:compare", help="Compare kinds of layers by cost, or mechanisms by what they learn.")
app.command("regard.cli.demo:demo", help="Train a translator with attention and one without, and see the difference.")


def run_command() -> None:
    """Run a command; an error that the user can mend becomes one sentence and exit code 2."""
    try:
        check_streams()
        app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()  # now, while a failure can still be reported
    except RegardError as error:
        exit_with_error(error, str(error))
    except CycloptsError as error:
        from regard.cli.usage import explain_usage

        exit_with_error(error, explain_usage(error))
    except BrokenPipeError:
        discard_output()  # the program that read our output has ended
    except (OSError, MemoryError, ModuleNotFoundError) as error:
        exit_with_error(error, explain_error(error))


def exit_with_error(error: Exception, text: str) -> None:
    """Write out the answer so far, print one sentence to standard error and exit with code 2."""
    if os.environ.get("REGARD_TRACEBACK"):
        raise error
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        discard_output()
    with contextlib.suppress(OSError, ValueError):
        if not getattr(error, "relayed", False):
            print_error(text)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        os._exit(2)  # under torchrun: the interpreter's way out may wait for processes that are gone
    sys.exit(2)


# Packages that commands import when they run, and the extra that brings them.
EXTRAS = {"matplotlib": "plot", "sklearn": "sklearn", "starlette": "web", "uvicorn": "web"}


def explain_error(error: Exception) -> str:
    """Return the message of an error of the system; for a missing package of an extra, how to install it."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if package in EXTRAS:
        return str(missing_package(package, EXTRAS[package]))
    if isinstance(error, MemoryError):
        return format_message("memory", "more work than fits into it", "less at once", "use smaller sizes or files")
    if isinstance(error, OSError) and error.strerror:
        fix = "free some space" if error.errno in (ENOSPC, EDQUOT) else "check the path and its permissions"
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "the file"
        return format_message("file", f"'{error.strerror}'", f"{place} to be usable", fix)
    return str(error)
