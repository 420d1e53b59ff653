"""`regard serve`: the inspector, as a page in the browser."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.datasets.bounds import get_bound
from regard.errors import wrong


@dataclass
class ServerOptions:
    """Where the page is served, and to whom."""

    host: str = "127.0.0.1"
    "The address to listen on. Any other than this machine's own asks for a token."
    port: int = 8642
    "The port; 0: any that is free."
    name: Annotated[list[str] | None, Parameter(negative="")] = None
    "More names that the server may be asked for by, such as that of a proxy."
    token: str | None = None
    "The token that answers need; made up where --host needs one and none is given."
    open: Annotated[bool, Parameter(negative="")] = False
    "Open the page in the browser."


@dataclass
class CapacityOptions:
    """How much is served."""

    workers: int = get_bound("server", "workers")
    "Requests that are computed at the same time."
    waiting: int = get_bound("server", "waiting")
    "Requests that wait; more are told to come back."
    seconds: float = float(get_bound("request", "seconds"))
    "The longest that an answer may take."
    threads: int = 1
    "Threads that torch may use for each of them."


def serve(
    *runs: Path,
    server: Annotated[ServerOptions | None, Parameter(name="*")] = None,
    capacity: Annotated[CapacityOptions | None, Parameter(name="*")] = None,
) -> None:
    """Serve a page on which to translate, see where models looked, and follow runs in progress.

    Parameters
    ----------
    runs
        Run folders, and recordings in files.
    """
    server, capacity = server or ServerOptions(), capacity or CapacityOptions()
    import torch

    from regard.web.app import build_app, format_url, open_socket, run_server
    from regard.web.limits import Limits
    from regard.web.security import Access

    torch.set_num_threads(capacity.threads)
    access = Access.from_host(server.host, server.name or (), server.token)
    limits = Limits(workers=capacity.workers, waiting=capacity.waiting, seconds=capacity.seconds)
    app = build_app(runs, access, limits)
    for path in runs:
        if path.is_file():
            check_recording(path)
    connection = open_socket(server.host, server.port)
    address = format_url(server.host, connection.getsockname()[1], access.token)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{address}\nCtrl-C ends it.", markup=False)
    if server.open:
        webbrowser.open(address)
    run_server(app, connection)


def check_recording(path: Path) -> None:
    """Raise unless this begins as a recording does, before anybody asks for it."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt"):
            return
    except (SafetensorError, OSError) as error:
        fix = "name a run folder, or a file that Recording.save wrote"
        raise wrong("recording", f"{path} ({error})", "a safetensors file", fix) from None
