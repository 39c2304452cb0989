"""What the demo stands on: GitHub, the model, the ledger, and the program's processes on them."""

import asyncio
import os
import secrets
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from bot.settings import WebSettings
from cli.demo.folder import Folder, temporary_folder
from cli.demo.processes import Process, environment, stop
from ledger.connection import connect
from ledger.ledger import open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from sandbox.github import GitHub, new_private_key
from sandbox.github.server import GitHubServer
from sandbox.model import ModelServer
from worker.settings import Settings

APP = "retriage"
APP_ID = 42
BOT = f"{APP}[bot]"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long things last, in seconds. ``pacing_scale`` is how much faster than GitHub's the
    write budget runs: the sandbox has no limits of its own."""

    lease: float = 120
    lock_delay: float = 60
    request: float = 20
    absence_window: float = 900
    tick: int = 60
    pacing_scale: float = 10_000

    def settings(self) -> dict[str, str]:
        """The same for the processes."""
        return {
            "RETRIAGE_LEASE_SECONDS": f"{self.lease:g}",
            "RETRIAGE_LOCK_DELAY_SECONDS": f"{self.lock_delay:g}",
            "RETRIAGE_REQUEST_TIMEOUT_SECONDS": f"{self.request:g}",
            "RETRIAGE_ABSENCE_WINDOW_SECONDS": f"{self.absence_window:g}",
            "RETRIAGE_TICK_SECONDS": f"{self.tick}",
            "RETRIAGE_PACING_SCALE": f"{self.pacing_scale:g}",
            "RETRIAGE_WRITE_INTERVAL_SECONDS": "0",
        }

    def timing(self) -> LedgerTiming:
        """The same for the ledger as the demo reads it."""
        return LedgerTiming(
            lease=timedelta(seconds=self.lease),
            lock_delay=timedelta(seconds=self.lock_delay),
            absence_window=timedelta(seconds=self.absence_window),
            request=timedelta(seconds=self.request),
            margin=timedelta(seconds=self.request) / 4,
            pacing_scale=self.pacing_scale,
        )


@dataclass
class Stage:
    """Everything that runs. ``settings`` is what the processes are started with."""

    github: GitHub
    model: ModelServer
    folder: Folder
    redis_url: str
    bounds: Bounds
    settings: dict[str, str]
    started: list[Process] = field(default_factory=list)
    lasting: set[str] = field(default_factory=set)

    def start(self, name: str, *arguments: str, **settings: str) -> Process:
        """Start one process that is to live as long as the demo; ``settings`` are its own."""
        self.lasting.add(name)
        return self.once(name, *arguments, **settings)

    def once(self, name: str, *arguments: str, **settings: str) -> Process:
        """Start one process that ends by itself."""
        ours = {*Settings.model_fields, *WebSettings.model_fields}
        given = environment({**self.settings, **settings}, ours)
        process = Process(name, arguments, given, self.folder)
        self.started.append(process)
        return process

    def kill(self, session: int, child: int) -> Process:
        """SIGKILL for the process that leads a session, and for its child. Raises LookupError."""
        for process in self.started:
            if process.pid == session:
                self.lasting.discard(process.name)
                process.kill()
                with suppress(ProcessLookupError):  # it is tied to its parent
                    os.kill(child, signal.SIGKILL)
                return process
        raise LookupError(f"no process of the demo leads session {session}")

    def named(self, start: str) -> list[Process]:
        """Those whose name starts so."""
        return [each for each in self.started if each.name.startswith(start)]

    def dead(self) -> Process | None:
        """One that was to last and has ended."""
        lasting = (each for each in self.started if each.name in self.lasting)
        return next((each for each in lasting if each.code is not None), None)

    def env_file(self) -> str:
        """Write down how the command line gets at this ledger; gives the file."""
        path = self.folder.path / "env"
        path.touch(mode=0o600)
        lines = (f"export {name}={shlex.quote(value)}" for name, value in self.settings.items())
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return str(path)


@contextmanager
def staged(
    build: Callable[[GitHub], None], bounds: Bounds, *, workers: int, clock: bool = True
) -> Iterator[Stage]:
    """Everything up, for as long as the block lasts. ``build`` fills the GitHub; without ``clock``
    nothing starts but what is asked for.

    The processes start while the GitHub is filled; nobody has installed the App yet.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        for name in ("logs", "tmp"):
            (folder.path / name).mkdir(mode=0o700)
        github = GitHub()
        server = stack.enter_context(GitHubServer(github))
        model = stack.enter_context(ModelServer())
        ledger = stack.enter_context(EmbeddedServer(folder.path))
        key = folder.path / "app.pem"
        key.touch(mode=0o600)
        key.write_text(new_private_key(), encoding="ascii")
        settings = {
            "APP_ID": str(APP_ID),
            "PRIVATE_KEY_PATH": str(key),
            "WEBHOOK_SECRET": secrets.token_hex(16),
            "CRON_SECRET": secrets.token_hex(16),
            "MARKER_KEYS": f"demo:{secrets.token_hex(32)}",
            "GITHUB_API_URL": server.url,
            "REDIS_URL": ledger.url,
            "ANTHROPIC_API_KEY": "sandbox",
            "ANTHROPIC_BASE_URL": model.url,
            "RETRIAGE_DATA_DIR": str(folder.path / "data"),
            "RETRIAGE_CHECKOUT_DIR": str(folder.path / "checkouts"),
            "HOST": "127.0.0.1",
            "PORT": "0",
            "TMPDIR": str(folder.path / "tmp"),
            **bounds.settings(),
        }
        stage = Stage(github, model, folder, ledger.url, bounds, settings)
        asyncio.run(_first_ledger(stage))
        stack.callback(stop, stage.started)
        stage.start("receiver", "web")
        for number in range(1, workers + 1):
            stage.start(f"worker-{number}", "worker")
        if clock:
            stage.start("clock", "clock")
        github.add_app(APP, APP_ID, private_key=key.read_text(encoding="ascii"))
        build(github)
        yield stage


async def _first_ledger(stage: Stage) -> None:
    """It is made together with its App: nothing that the bot has signed can exist."""
    async with connect(stage.redis_url) as client:
        await open_ledger(client, stage.bounds.timing()).epochs.ensure(first=True)
