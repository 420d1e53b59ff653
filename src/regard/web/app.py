"""Build the server: its routes behind its guard."""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from regard.datasets.bounds import get_bound
from regard.errors import wrong
from regard.web.connections import Connection, raise_file_limit
from regard.web.limits import Limits
from regard.web.responses import HANDLERS
from regard.web.routes import Routes
from regard.web.runs import Runs, split_paths
from regard.web.security import Access, Guard
from regard.web.store import Files

BACKLOG = 128  # connections accepted at once: each is an open file, and files must not run out before one is dropped


def build_app(paths: Sequence[Path], access: Access | None = None, limits: Limits | None = None) -> Guard:
    """Return the app that serves these run folders and recordings, and nothing else."""
    limits = Limits() if limits is None else limits
    folders, files = split_paths(paths)
    routes = Routes(Runs(folders, limits), Files(files, limits.kept), limits)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        routes.close()

    app = Starlette(routes=routes.list_routes(), exception_handlers=HANDLERS, lifespan=lifespan)
    return Guard(app, Access() if access is None else access, routes.close)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens already: its port is known, and early clients wait instead of being refused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    connection = socket.socket(family)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        connection.bind((host, port))
        connection.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        connection.close()
        fix = "use --port 0 for any that is free"
        raise wrong("port", f"{port} of {host} ({error})", "one that is free", fix) from None
    return connection


def format_url(host: str, port: int, token: str | None) -> str:
    """Return the URL to open. The token is behind #, which browsers never send: it is in no log and no referrer.

    >>> format_url("127.0.0.1", 8000, None)
    'http://127.0.0.1:8000/'
    """
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/" + ("" if token is None else f"#token={token}")


class Server(uvicorn.Server):
    """A server that ends its streams before it waits for them, so that shutting down raises nothing."""

    def __init__(self, config: uvicorn.Config, app: Guard) -> None:
        super().__init__(config)
        self.app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.close()
        await super().shutdown(sockets)


def build_server(app: Guard) -> Server:
    """Return the server of the app, not yet started."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=2 * Connection.MOST,
        timeout_keep_alive=Connection.SILENCE,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=get_bound("request", "header bytes"),
    )
    return Server(config, app)


def run_server(app: Guard, connection: socket.socket) -> None:
    """Serve until interrupted."""
    raise_file_limit()
    build_server(app).run(sockets=[connection])
