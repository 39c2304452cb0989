"""The processes: ``python -m bot web`` receives, ``python -m bot clock`` ticks.

Exit codes: 0 ended by SIGTERM or SIGINT; 2 the usage, the settings or the address do not do.
"""

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final

import uvicorn
import uvloop
from starlette.types import ASGIApp

from bot.app import make_app
from bot.clock import run_clock
from bot.connection import KEEP_ALIVE_SECONDS, Connection
from bot.enqueue import linked
from bot.settings import ClockSettings, SettingsError, WebSettings, read_settings
from process.log import LineLog, forward_libraries

GRACE_SECONDS: Final = 8
"""After SIGTERM, for the requests under way: platforms kill after ten."""
MOST_CONNECTIONS: Final = 200
"""More are answered 503 at once."""
BACKLOG: Final = 128
"""Connections that wait to be accepted."""


GARBAGE_THRESHOLD: Final = 20_000
"""Objects more than before, at which Python looks for cycles: at its own 700, each delivery would
pay for a look."""


def main(arguments: list[str]) -> int:
    """Run one process to its end; the exit code."""
    start = _PROCESSES.get(" ".join(arguments))
    if start is None:
        sys.stderr.write(f"usage: python -m bot {'|'.join(_PROCESSES)}\n")
        return 2
    try:
        start()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def run_web(settings: WebSettings, log: LineLog) -> None:
    """Receive until SIGTERM or SIGINT. Raises SettingsError where the address is taken."""
    listener = listen(settings.host, settings.port)
    ending = _Ending()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ending)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, log, listener, ending))


class _Ending:
    """What a signal does before uvicorn listens to signals, and after it did.

    uvicorn sends itself the signal once more when it has ended: that must not kill.
    """

    def __init__(self) -> None:
        self._asked = False
        self._server: uvicorn.Server | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True
        if self._server is not None:
            self._server.should_exit = True

    def of(self, server: uvicorn.Server) -> None:
        self._server = server
        server.should_exit = self._asked


async def _serve(
    settings: WebSettings, log: LineLog, listener: socket.socket, ending: _Ending
) -> None:
    async with linked(settings.redis_url.get_secret_value()) as link:
        server = make_server(make_app(settings, link, log))
        ending.of(server)
        host, port = listener.getsockname()[:2]
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        log("LISTENING", address=f"http://{f'[{host}]' if ':' in host else host}:{port}")
        await server.serve(sockets=[listener])
    log("STOPPED")


def make_server(app: ASGIApp, *, connection: type[Connection] = Connection) -> uvicorn.Server:
    """uvicorn with bounds on everything that waits or grows, and without a log of requests."""
    config = uvicorn.Config(
        app,
        http=connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any. Raises SettingsError where it cannot.

    It is made as TCP by name: asyncio takes Nagle's delay off such sockets alone, and with it every
    answer on a connection that is kept would wait 40 ms for the client's acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SettingsError((f"PORT: cannot listen at {host}:{port}: {error.strerror}",)) from None
    return listener


def _web() -> None:
    settings = read_settings(WebSettings)
    run_web(settings, _log(settings))


def _clock() -> None:
    settings = read_settings(ClockSettings)
    run_clock(settings, _log(settings))


def _log(settings: ClockSettings) -> LineLog:
    log = LineLog(sys.stdout, form=settings.log_format)
    forward_libraries(log, settings.log_level)
    return log


_PROCESSES: Final[Mapping[str, Callable[[], None]]] = {"web": _web, "clock": _clock}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
