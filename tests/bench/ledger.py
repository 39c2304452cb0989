"""The ledger: how soon it answers at the door of a run, what a run leaves behind, and listings.

*Door*: ``open`` is all that a new run asks of the ledger up to its first save; ``refuse`` and
``reuse`` are whole calls of ``execute``, for a run that another worker has, and for a completed one
of 50 issues. To open one is three writes, each on disk before it is acknowledged: what one such
write takes on this disk is measured beside it.

*Memory*: whole windows of 50 issues in comment mode, run by the pipeline against the sandbox over
HTTP with the real SDK, each in a repository of its own. What each key takes by ``MEMORY USAGE``, by
what it belongs to, divided by the windows. ``run`` holds what the run has for itself, and goes with
the retention; ``issues`` what all runs share of its issues.

*Listing*: by status over an index of a million runs, without their contents.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import Final

import anyio
import redis.asyncio

from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.records import Due, DueKind
from ledger.timing import LedgerTiming
from tests.bench import Options, UnmeasuredError
from tests.bench.stage import (
    OWNER,
    add_repository,
    bare_server,
    install,
    made_up_issues,
    quiet,
    spread,
    window,
    wiring,
)
from tests.processes.fleet import Fleet, fleet
from triage.contract import RunInputs, RunRecord, Status
from worker.pipeline import execute
from worker.ports import Place, Ports

ISSUES: Final = 50
INDEXED: Final = 1_000_000
AT_ONCE: Final = 5_000
BATCHES: Final = 10
SHARE_OF: Final = {Status.COMPLETED: 90, Status.NO_CHANGE: 8, Status.FAILED_AFTER_WRITE: 1}
"""Of a hundred runs in the index; the last one is under review."""

SHARED: Final = frozenset({"effect", "effects", "github", "decisions"})
"""What belongs to issues; the rest belongs to runs, but for what is there once for all of them."""

ONCE: Final = frozenset(
    {"epoch", "fence", "counters", "bot", "budget", "incidents", "repositories", "repository"}
)


def measure(options: Options) -> dict[str, object]:
    """All of it."""
    windows, indexed = (1, 10_000) if options.quick else (8, INDEXED)
    with fleet([]) as run, quiet():
        figures = anyio.run(_windows, run, windows, 50 if options.quick else 1000)
    with bare_server() as server:
        figures["listing"] = anyio.run(_listing, server.url, indexed)
    return figures


async def _windows(run: Fleet, windows: int, times: int) -> dict[str, object]:
    ids = {
        f"r{number}": add_repository(run, f"r{number}", made_up_issues(ISSUES, number))
        for number in range(windows)
    }
    installation, made = install(run, list(ids)), wiring(run)
    async with (
        made.ledger() as ledger,
        made.ports(ledger) as ports,
        connect(run.server.url) as client,
    ):
        for name, id_ in ids.items():
            await window(Place(id_, f"{OWNER}/{name}", installation), ports)
        memory = await _memory(client, windows)
        completed = (await ledger.runs.listed())[0].inputs
        door = await _door(ledger, ports, completed, times)
        durable = [await _timed(client.set("-", number)) for number in range(times)]
        return {"door": door, "one durable write": _in_batches(durable), "memory": memory}


async def _memory(client: redis.asyncio.Redis, windows: int) -> dict[str, object]:
    """Bytes of all keys, by what they belong to."""
    taken: Counter[str] = Counter()
    async for key in client.scan_iter(count=1000):
        family = bytes(key).decode("latin-1").partition(":")[0]
        taken[family] += await client.memory_usage(key, samples=0) or 0
    own = {name: size for name, size in taken.items() if name not in SHARED | ONCE}
    shared = {name: size for name, size in taken.items() if name in SHARED}
    by_key = {name: round(size / windows) for name, size in sorted({**own, **shared}.items())}
    return {
        "windows": windows,
        "issues_each": ISSUES,
        "run_bytes": round(sum(own.values()) / windows),
        "issues_bytes": round(sum(shared.values()) / windows),
        "bytes": round(sum({**own, **shared}.values()) / windows),
        "bound_bytes": 16_384,
        "by_key": by_key,
    }


async def _door(
    ledger: Ledger, ports: Ports, completed: RunInputs, times: int
) -> dict[str, object]:
    """Open a run, refuse a second worker, reuse what is completed; one after the other."""
    taken: dict[str, list[float]] = {"open": [], "refuse": [], "reuse": []}
    for number in range(times):
        key = completed.dedupe_key.replace(":p", f"-{number}:p", 1)
        inputs = completed.model_copy(update={"dedupe_key": key})
        taken["open"].append(await _timed(_open(ledger, inputs)))
        taken["refuse"].append(await _timed(_asked(inputs, ports, "refused")))
        taken["reuse"].append(await _timed(_asked(completed, ports, "reused")))
    figures = {name: _in_batches(seconds) for name, seconds in taken.items()}
    return {**figures, "bound_p99_ms": 5}


def _in_batches(seconds: Sequence[float]) -> dict[str, object]:
    """All samples, and the p99 of each tenth of them: others on the machine disturb some."""
    size = len(seconds) // BATCHES
    batches = [spread(seconds[first : first + size]) for first in range(0, len(seconds), size)]
    p99 = sorted(batch["p99_ms"] for batch in batches)
    return {**spread(seconds), "p99_ms_of_batches": [p99[0], p99[len(p99) // 2], p99[-1]]}


async def _open(ledger: Ledger, inputs: RunInputs) -> None:
    """What an attempt asks of the ledger up to its first save."""
    key, now = inputs.dedupe_key, datetime.now(UTC)
    await ledger.epochs.ensure(first=False)
    await ledger.leases.view(key)
    lease = await ledger.leases.acquire(key, "worker-1", key)
    if lease is None:
        raise UnmeasuredError(f"{key} has a lease already")
    await ledger.leases.view(key)
    await ledger.due.add(Due(DueKind.CONTINUE, key), now)
    run = RunRecord(inputs=inputs, status=Status.RUNNING, created_at=now, updated_at=now)
    await ledger.runs.save(lease, run)


async def _asked(inputs: RunInputs, ports: Ports, outcome: str) -> None:
    report = await execute(inputs, ports)
    if report.outcome != outcome:
        raise UnmeasuredError(f"{inputs.dedupe_key} was {report.outcome}, not {outcome}")


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def _listing(url: str, indexed: int) -> dict[str, object]:
    """The newest fifty of each status, from an index of so many runs."""
    async with connect(url) as client:
        before = int((await client.info("memory"))["used_memory"])
        for first in range(0, indexed, AT_ONCE):
            await _index(client, range(first, first + AT_ONCE))
        size = int((await client.info("memory"))["used_memory"]) - before
        runs = open_ledger(client, LedgerTiming()).runs
        statuses = (None, *SHARE_OF, Status.NEEDS_REVIEW)
        seconds = [
            await _timed(runs.listed(status=status)) for _ in range(100) for status in statuses
        ]
        return {
            "runs": indexed,
            "bytes_each": round(size / indexed),
            **spread(seconds),
            "bound_p99_ms": 20,
        }


async def _index(client: redis.asyncio.Redis, numbers: range) -> None:
    """Runs in the two indexes that a listing of all repositories asks, as ``SAVE`` puts them."""
    named: dict[str, dict[str, float]] = {}
    for number in numbers:
        key = f"daily-issue-triage:R{number % 10_000 + 1}:window-{number // 10_000}:p0000000a"
        named.setdefault(f"runs::{_status(number)}", {})[key] = number
    async with client.pipeline(transaction=False) as writes:
        for index, keys in named.items():
            writes.zadd(index, keys)
            writes.zadd("runs::", keys)
        await writes.execute()


def _status(number: int) -> Status:
    place = number % 100
    for status, share in SHARE_OF.items():
        place -= share
        if place < 0:
            return status
    return Status.NEEDS_REVIEW
