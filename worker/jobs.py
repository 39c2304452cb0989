"""The jobs that RQ runs, each the start of one way into the pipeline.

A job runs in a work horse, a process of its own, which dies with its worker. What it does is
harmless if it comes twice, and what it leaves undone is in the ledger as due: RQ's own records are
never the truth about a run.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache

from ledger.errors import FrozenRunError
from ledger.records import Due
from triage.asks import parse_ask
from triage.identifiers import JobKey
from worker import commands, recovery, windows
from worker.ports import LeaseLost, LedgerUnavailableError, Ports, ReadFailed
from worker.settings import Process, read_settings
from worker.wiring import Wiring

Work = Callable[[Ports], Awaitable[object]]

DEADLINE_SECONDS = 3600.0
"""A job's own end, well under RQ's; a run stops sending long before that."""


def handle(ask: Mapping[str, object], guid: str, index: int = 0) -> str:
    """What one delivery asks for; ``index`` counts its asks."""

    async def work(ports: Ports) -> object:
        ports.log("DELIVERY handled", guid=guid, ask=ask.get("kind"))
        return await commands.handle_due(parse_ask(ask), Due.ask(guid, index), ports)

    return _run(work)


def ensure_window(job: str, repository_id: int, window: str | None = None) -> str:
    """Start the newest due window, or the one named, unless it has a run."""
    return _run(
        lambda ports: windows.ensure_window(JobKey(job), repository_id, ports, window=window)
    )


def continue_run(dedupe_key: str) -> str:
    """Go on with a run from its frozen inputs."""
    return _run(lambda ports: recovery.continue_run(dedupe_key, ports))


def sample(effect_key: str) -> str:
    """One read of an effect in doubt."""
    return _run(lambda ports: recovery.sample(effect_key, ports))


def verify(effect_key: str) -> str:
    """Look for a late writer of an effect."""
    return _run(lambda ports: recovery.verify(effect_key, ports))


def recover(name: str) -> str:
    """Read back what a lost ledger knew."""
    return _run(lambda ports: recovery.recover(name, ports))


def _run(work: Work) -> str:
    """Run one job to its end and say how it ended. Nothing is raised that RQ would only keep."""
    die_with_parent()
    try:
        return asyncio.run(_bounded(work))
    except LeaseLost as lost:
        wiring().log("RUN-REFUSED", run=str(lost), reason="the lease was lost on the way")
        return "lease lost"
    except LedgerUnavailableError as error:
        wiring().log("STATE-NOT-SAVED", reason=str(error))
        return "ledger unavailable"
    except (ReadFailed, FrozenRunError) as error:
        wiring().log("JOB-FAILED", reason=str(error))
        return str(error)
    except TimeoutError:
        wiring().log("JOB-FAILED", reason="the job's own deadline is over")
        return "deadline"


async def _bounded(work: Work) -> str:
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        wiring().ledger() as ledger,
        wiring().ports(ledger) as ports,
    ):
        return str(await work(ports))


@cache
def wiring() -> Wiring:
    """The wiring of this process, from its environment. Raises SettingsError."""
    settings = read_settings(Process.WORKER)
    url = settings.redis_url
    return Wiring(settings, url.get_secret_value() if url is not None else "")


def die_with_parent() -> None:
    """Have the kernel end this process with its worker: a work horse whose worker is gone has side
    effects that nobody watches. Elsewhere than on Linux the leases alone keep it from writing."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
