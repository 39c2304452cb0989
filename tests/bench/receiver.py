"""*receiver*: deliveries a second beside a Probot 14 server that does the same work.

Each side is one process over loopback: it checks the signature, knows the delivery's id, and puts
one job into its Redis queue before it answers (RQ here, BullMQ there). The queues are two databases
of one embedded server. The same load goes to one and to the other in turn, so that what else the
machine does falls on both; a ratio is of two loads side by side, and the median of those counts.
Every accepted delivery must have its one job in the end, or there are no figures.

``probot`` is its own server as ``probot run`` starts it in production: it writes one line for each
delivery, as we do. ``probot_quiet`` is the same without the line, which we write all the same.
``cold`` is the first load after the start.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from redis import Redis
from rq import Queue
from rq.job import Job

from bot.enqueue import QUEUE, SERIALIZER
from ledger.codec import text
from ledger.connection import connect_sync
from ledger.server import EmbeddedServer
from tests.bench import Options, UnmeasuredError
from tests.bench.probot_server import installed, probot, versions
from tests.bench.servers import SECRET, Running, started, web

CONNECTIONS: Final = 32
ROUNDS: Final = 15
DELIVERIES: Final = 3_000
"""Of one round, for each side."""
WARM_UP_ROUNDS: Final = 2
"""Before what counts: both sides are given the time to become as fast as they get."""
BOT_ID: Final = 9_000
_LOAD_SECONDS: Final = 120
_AT_ONCE: Final = 1_000


@dataclass(slots=True)
class _Side:
    """One server: ``guids`` reads the delivery of each of its jobs back."""

    name: str
    running: Running
    port: int
    guids: Callable[[], list[str]]
    accepted: int = 0


def measure(options: Options) -> dict[str, object]:
    """Both sides in turn, then what stands in their queues."""
    rounds, warm_up = (1, 0) if options.quick else (ROUNDS, WARM_UP_ROUNDS)
    count = 100 if options.quick else DELIVERIES
    folder = installed()
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(EmbeddedServer(logs / "data"))
        sides = _sides(server, folder, logs, stack)
        loads = [_round(number, sides, count) for number in range(1 + warm_up + rounds)]
        jobs = {side.name: _check(side) for side in sides}
        ceiling = _ceiling(logs, count)
    return {
        "connections": CONNECTIONS,
        "deliveries_a_round": count,
        "versions": versions(folder),
        **_figures(loads[1 + warm_up :]),
        "cold": loads[0],
        "rounds": loads[1:],
        "jobs": jobs,
        "load_alone_per_second": ceiling,
    }


def _sides(server: EmbeddedServer, folder: Path, logs: Path, stack: ExitStack) -> list[_Side]:
    """Three servers, each with a database of its own."""
    ours, *theirs = (
        stack.enter_context(connect_sync(server.url.replace("db=0", f"db={number}")))
        for number in range(3)
    )
    ours.sadd("bot:ids", BOT_ID)
    receiver = stack.enter_context(web(server.url, logs))
    sides = [_Side("retriage", receiver, receiver.port(), partial(_of_rq, ours))]
    redis = Path(unquote(server.url.removeprefix("unix://").partition("?")[0]))
    for number, (name, level) in enumerate((("probot", "info"), ("probot_quiet", "warn"))):
        started_one = probot(folder, redis, number + 1, logs, log_level=level)
        running, port = stack.enter_context(started_one)
        sides.append(_Side(name, running, port, partial(_of_bullmq, theirs[number])))
    return sides


def _round(number: int, sides: list[_Side], count: int) -> dict[str, dict[str, Any]]:
    """The same load for each, one after the other."""
    loaded: dict[str, dict[str, Any]] = {}
    for side in sides:
        before = side.running.cpu_seconds()
        loaded[side.name] = load(side.port, number * count + 1, count)
        after = side.running.cpu_seconds()
        if before is not None and after is not None:
            loaded[side.name]["cpu_us_each"] = round((after - before) / count * 1e6)
        side.accepted += sum(
            answers
            for status, answers in loaded[side.name]["statuses"].items()
            if status in ("200", "202")
        )
        told = ", ".join(f"{key} {value}" for key, value in loaded[side.name].items())
        sys.stderr.write(f"bench: round {number}, {side.name}: {told}\n")
    return loaded


def load(port: int, first: int, count: int) -> dict[str, Any]:
    """Deliveries from a process of its own; what it saw. Raises UnmeasuredError where it fails."""
    asked = {
        "port": port,
        "connections": CONNECTIONS,
        "first": first,
        "count": count,
        "secret": SECRET,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.bench.load"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=_LOAD_SECONDS,
        check=False,
    )
    if ended.returncode:
        raise UnmeasuredError(f"the load failed: {ended.stderr.strip().splitlines()[-1]}")
    seen = json.loads(ended.stdout)
    return {key: round(v, 3) if isinstance(v, float) else v for key, v in seen.items()}


def _figures(loads: list[dict[str, dict[str, Any]]]) -> dict[str, object]:
    """Medians for each side, and of the ratios of ours to each of theirs within a round."""
    keys = [key for key in ("per_second", "p50_ms", "p99_ms", "cpu_us_each") if _has(loads, key)]
    names = list(loads[0])
    sides = {
        name: {key: round(statistics.median(one[name][key] for one in loads), 3) for key in keys}
        for name in names
    }
    ratios = {
        f"to_{name}": {key: _ratio(loads, name, key) for key in keys}
        for name in names
        if name != "retriage"
    }
    return {**sides, **ratios}


def _ratio(loads: list[dict[str, dict[str, Any]]], name: str, key: str) -> float:
    ratios: list[float] = [one["retriage"][key] / max(one[name][key], 1e-9) for one in loads]
    return round(statistics.median(ratios), 3)


def _has(loads: list[dict[str, dict[str, Any]]], key: str) -> bool:
    return all(key in side for one in loads for side in one.values())


def _check(side: _Side) -> dict[str, int]:
    """How many were accepted, and the jobs of them: each has one. Raises UnmeasuredError."""
    guids = side.guids()
    if not len(guids) == len(set(guids)) == side.accepted:
        raise UnmeasuredError(
            f"{side.name}: {side.accepted} deliveries were accepted, "
            f"and {len(guids)} jobs stand for {len(set(guids))} of them"
        )
    return {"accepted": side.accepted, "jobs": len(guids)}


def _of_rq(redis: Redis) -> list[str]:
    ids = Queue(QUEUE, connection=redis, serializer=SERIALIZER).job_ids
    guids: list[str] = []
    for at in range(0, len(ids), _AT_ONCE):
        jobs = Job.fetch_many(ids[at : at + _AT_ONCE], connection=redis, serializer=SERIALIZER)
        guids += [str(job.args[1]) for job in jobs if job is not None]
    return guids


def _of_bullmq(redis: Redis) -> list[str]:
    ids = [text(id_) for id_ in redis.lrange("bull:retriage:wait", 0, -1)]
    with redis.pipeline(transaction=False) as reads:
        for id_ in ids:
            reads.hget(f"bull:retriage:{id_}", "data")
        return [json.loads(data)["guid"] for data in reads.execute()]


def _ceiling(folder: Path, count: int) -> float:
    """How fast the load is where the server does nothing."""
    command = [sys.executable, "-m", "tests.bench.bare"]
    with started("bare", command, folder, {}, Path.cwd()) as running:
        return float(load(running.port(), 1, count)["per_second"])
