"""Repositories, the decisions made in them, the bot's user ids, and reports.

Keys: ``repository:{id}``, ``repositories`` (name to id), ``decisions:{id}:{input version}``,
``bot:ids``, ``report:{path}``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import redis.asyncio
from pydantic import TypeAdapter

from ledger.codec import parsed, raw, text
from ledger.connection import answered
from ledger.records import Report, RepositoryRecord
from ledger.scripts import Script
from ledger.timing import LedgerTiming, milliseconds
from triage.identifiers import JobKey

_REPORT = TypeAdapter(Report)

# KEYS: the report. ARGV: it as it was read, empty where there was none; as it is to be; for how
# long. Asked again it is kept, and nothing more.
KEEP_REPORT = """
local stands = redis.call('GET', KEYS[1]) or ''
if stands ~= ARGV[1] and stands ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""


class Repositories:
    """What the ledger knows of repositories and of the decisions made in them."""

    def __init__(self, redis: redis.asyncio.Redis, timing: LedgerTiming) -> None:
        self._redis = redis
        self._retention = milliseconds(timing.retention)
        self._keep_report = Script(redis, KEEP_REPORT)

    async def get(self, repository_id: int) -> RepositoryRecord | None:
        """The record, or None."""
        with answered():
            stored = await self._redis.hgetall(f"repository:{repository_id}")
        return _record(stored)

    async def named(self, full_name: str) -> RepositoryRecord | None:
        """The record of the repository that was last saved under this name."""
        with answered():
            found = await self._redis.hget("repositories", full_name.lower())
        record = None if found is None else await self.get(int(found))
        same = record is not None and record.full_name.lower() == full_name.lower()
        return record if same else None

    async def all(self) -> list[RepositoryRecord]:
        """Every repository, by name."""
        with answered():
            ids = sorted(set(await self._redis.hvals("repositories")))
            async with self._redis.pipeline(transaction=False) as reads:
                for id_ in ids:
                    reads.hgetall(f"repository:{text(id_)}")
                stored = await reads.execute()
        records = [record for item in stored if (record := _record(item)) is not None]
        return sorted(records, key=lambda record: record.full_name.lower())

    async def of_installation(self, installation: str) -> list[int]:
        """The ids of an installation's repositories."""
        return [record.id for record in await self.all() if record.installation == installation]

    async def save(self, record: RepositoryRecord, was: RepositoryRecord | None = None) -> None:
        """Write what differs from ``was``, as it was read: what somebody else changed meanwhile
        stands. One that is no longer active leaves the counts of what was last completed and
        recalled."""
        before, after = _fields(was) if was is not None else {}, _fields(record)
        changed = {name: value for name, value in after.items() if before.get(name) != value}
        if not changed:
            return
        with answered():
            async with self._redis.pipeline(transaction=True) as writes:
                if not record.active:
                    for counts in ("completed", "recalled"):
                        writes.hdel(counts, *(f"{record.id} {job}" for job in JobKey))
                flat = [part for pair in changed.items() for part in pair]
                writes.hset(f"repository:{record.id}", items=flat)
                writes.hset("repositories", record.full_name.lower(), str(record.id))
                await writes.execute()

    async def settled(
        self, repository_id: int, input_version: str, issue_ids: Sequence[int]
    ) -> dict[int, str]:
        """Issue id to the content digest that was decided under this input version."""
        if not issue_ids:
            return {}
        with answered():
            found = await self._redis.hmget(
                _decisions(repository_id, input_version), [str(id_) for id_ in issue_ids]
            )
        return {
            id_: _hexadecimal(raw(text(digest)))
            for id_, digest in zip(issue_ids, found, strict=True)
            if digest is not None
        }

    async def settle(
        self, repository_id: int, input_version: str, digests: Mapping[int, str]
    ) -> None:
        """Remember decided contents, so that nobody pays for them every day.

        All of an input version are forgotten together, one retention after the last was added.
        """
        if not digests:
            return
        key = _decisions(repository_id, input_version)
        with answered():
            async with self._redis.pipeline(transaction=True) as writes:
                writes.hset(key, items=_raw(digests))
                writes.pexpire(key, self._retention)
                await writes.execute()

    async def bot_ids(self) -> frozenset[int]:
        """User ids that are or were the bot's."""
        with answered():
            return frozenset(int(id_) for id_ in await self._redis.smembers("bot:ids"))

    async def add_bot_id(self, user_id: int) -> None:
        """Remember one."""
        with answered():
            await self._redis.sadd("bot:ids", str(user_id))

    async def save_report(self, report: Report, was: Report | None = None) -> bool:
        """Keep the artifact of a run that writes nothing else, for one retention, in the place of
        ``was``. False where another stands there by now: then nothing happens."""
        before, after = b"" if was is None else _packed(was), _packed(report)
        args: list[str | bytes | float] = [before, after, self._retention]
        return bool(await self._keep_report([f"report:{report.path}"], args))

    async def report(self, path: str) -> Report | None:
        """The artifact of a window."""
        with answered():
            stored = await self._redis.get(f"report:{path}")
        return None if stored is None else _REPORT.validate_json(stored)


def _raw(digests: Mapping[int, str]) -> list[str | bytes]:
    """Issue id and digest in turn, the digest as 32 bytes."""
    return [part for id_, digest in digests.items() for part in (str(id_), bytes.fromhex(digest))]


def _hexadecimal(stored: bytes) -> str:
    """A digest as it is compared; 64 bytes are its digits already."""
    return stored.decode() if len(stored) == 64 else stored.hex()


def _decisions(repository_id: int, input_version: str) -> str:
    return f"decisions:{repository_id}:{input_version}"


def _fields(record: RepositoryRecord) -> dict[str, str]:
    """A record as its hash holds it: each field as JSON."""
    return {name: json.dumps(value) for name, value in record.model_dump(mode="json").items()}


def _record(stored: Mapping[str | bytes, str | bytes]) -> RepositoryRecord | None:
    if not stored:
        return None
    fields = ",".join(f'"{text(name)}":{text(value)}' for name, value in stored.items())
    return parsed(RepositoryRecord, f"{{{fields}}}")


def _packed(report: Report) -> bytes:
    return TypeAdapter(dict[str, str]).dump_json(asdict(report))
