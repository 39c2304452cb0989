"""Counts for Prometheus: ``counters``, ``completed``, ``recalled``, ``incidents``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import redis.asyncio

from ledger.codec import moment, texts
from ledger.connection import answered
from triage.contract import Status

_KEPT_INCIDENTS = 1000


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that the promise excludes, or nearly: a person should look."""

    kind: str
    detail: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """All counts at one instant.

    ``runs_now``: runs by their present status. ``attempts``: attempts by the status they ended
    with. ``effects``: by evidence, of runs that are over. ``requests``: to GitHub, by kind.
    ``cost``: dollars (estimated), turns, tokens, sessions. ``completed``: when a window was last
    completed, by the repository's name then and the job; ``recalled``: the share, 0 to 1, of the
    last review's findings that the newest completed run recalled that had any; of active
    repositories. ``broken_links``: answers of resumed reviews that were not continuous.
    ``denials``: calls of tools that the agent was not allowed.
    """

    runs_now: Mapping[Status, int]
    attempts: Mapping[str, int]
    effects: Mapping[str, int]
    requests: Mapping[str, int]
    incidents: Mapping[str, int]
    cost: Mapping[str, float]
    completed: Mapping[tuple[str, str], datetime]
    due: int
    recalled: Mapping[tuple[str, str], float]
    broken_links: int
    denials: int


class Counters:
    """Counts that all processes share. Runs, effects and cost are counted where runs are saved."""

    def __init__(self, redis: redis.asyncio.Redis) -> None:
        self._redis = redis

    async def requests(self, kind: str, number: int = 1) -> None:
        """Count requests to GitHub."""
        with answered():
            await self._redis.hincrby("counters", f"requests:{kind}", number)

    async def incident(self, kind: str, detail: str) -> None:
        """Count an incident, and keep its line: the newest thousand stay."""
        with answered():
            seconds, _ = await self._redis.time()
            line = json.dumps({"kind": kind, "detail": detail, "at": int(seconds) * 1000})
            async with self._redis.pipeline(transaction=True) as writes:
                writes.hincrby("counters", f"incidents:{kind}", 1)
                writes.lpush("incidents", line)
                writes.ltrim("incidents", 0, _KEPT_INCIDENTS - 1)
                await writes.execute()

    async def incidents(self, limit: int = 50) -> list[Incident]:
        """The newest ones, newest first."""
        with answered():
            lines = await self._redis.lrange("incidents", 0, limit - 1)
        found = (json.loads(line) for line in lines)
        return [Incident(item["kind"], item["detail"], moment(item["at"])) for item in found]

    async def snapshot(self) -> Counts:
        """All counts, read together."""
        with answered():
            async with self._redis.pipeline(transaction=True) as reads:
                reads.hgetall("counters")
                reads.hgetall("completed")
                reads.hgetall("recalled")
                reads.zcard("window:due")
                for status in Status:
                    reads.zcard(f"runs::{status}")
                counters, completed, recalled, due, *runs = await reads.execute()
        counted = texts(counters)
        return Counts(
            runs_now=dict(zip(Status, runs, strict=True)),
            attempts=_whole(counted, "runs:"),
            effects=_whole(counted, "effects:"),
            requests=_whole(counted, "requests:"),
            incidents=_whole(counted, "incidents:"),
            cost={name: float(value) for name, value in _part(counted, "cost:").items()},
            completed=dict(_completed(job, last) for job, last in texts(completed).items()),
            due=due,
            recalled=dict(_recalled(job, last) for job, last in texts(recalled).items()),
            broken_links=int(counted.get("links:broken", 0)),
            denials=int(counted.get("denials", 0)),
        )


def _part(counted: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in counted.items()
        if name.startswith(prefix)
    }


def _whole(counted: Mapping[str, str], prefix: str) -> dict[str, int]:
    return {name: int(value) for name, value in _part(counted, prefix).items()}


def _completed(place: str, last: str) -> tuple[tuple[str, str], datetime]:
    """From ``{repository id} {job}`` and ``{milliseconds} {repository}``."""
    at, _, repository = last.partition(" ")
    return (repository, place.partition(" ")[2]), moment(at)


def _recalled(place: str, last: str) -> tuple[tuple[str, str], float]:
    """From ``{repository id} {job}`` and ``{share} {repository}``."""
    share, _, repository = last.partition(" ")
    return (repository, place.partition(" ")[2]), float(share)
