"""Repositories, decisions, the bot's user ids, reports: the translation of
``ledger.repositories``."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ledger.errors import LedgerCorruptError
from ledger.records import Report, RepositoryRecord
from ledger.timing import LedgerTiming, milliseconds
from tests.simulation.memory.rows import Kept, sealed
from tests.simulation.memory.server import MemoryServer
from triage.identifiers import JobKey


class MemoryRepositories:
    """What the ledger knows of repositories and of the decisions made in them."""

    def __init__(self, server: MemoryServer, timing: LedgerTiming) -> None:
        self._server = server
        self._retention = milliseconds(timing.retention)

    async def get(self, repository_id: int) -> RepositoryRecord | None:
        """The record, or None. LedgerCorruptError where only a part of it stands."""
        fields = self._server.state.repositories.get(repository_id)
        return None if fields is None else _record(fields)

    async def named(self, full_name: str) -> RepositoryRecord | None:
        """The record of the repository that was last saved under this name."""
        found = self._server.state.names.get(full_name.lower())
        record = None if found is None else await self.get(found)
        same = record is not None and record.full_name.lower() == full_name.lower()
        return record if same else None

    async def all(self) -> list[RepositoryRecord]:
        """Every repository, by name."""
        repositories = self._server.state.repositories
        ids = sorted(set(self._server.state.names.values()), key=str)
        records = [_record(repositories[id_]) for id_ in ids if id_ in repositories]
        return sorted(records, key=lambda record: record.full_name.lower())

    async def of_installation(self, installation: str) -> list[int]:
        """The ids of an installation's repositories."""
        return [record.id for record in await self.all() if record.installation == installation]

    async def save(self, record: RepositoryRecord, was: RepositoryRecord | None = None) -> None:
        """Write what differs from ``was``, as it was read: what somebody else changed meanwhile
        stands. One that is no longer active leaves the counts of what was last completed and
        recalled."""
        before = {} if was is None else was.__dict__
        after = sealed(record).__dict__
        changed = {
            name: value
            for name, value in after.items()
            if name not in before or before[name] != value
        }
        if not changed:
            return
        state = self._server.state
        if not record.active:
            for job in JobKey:
                state.completed.pop(f"{record.id} {job}", None)
                state.recalled.pop(f"{record.id} {job}", None)
        state.repositories[record.id] = {**state.repositories.get(record.id, {}), **changed}
        state.names[record.full_name.lower()] = record.id

    async def settled(
        self, repository_id: int, input_version: str, issue_ids: Sequence[int]
    ) -> dict[int, str]:
        """Issue id to the content digest that was decided under this input version."""
        if not issue_ids:
            return {}
        digests = self._decisions(repository_id, input_version)
        return {id_: digests[id_] for id_ in issue_ids if id_ in digests}

    async def settle(
        self, repository_id: int, input_version: str, digests: Mapping[int, str]
    ) -> None:
        """Remember decided contents, so that nobody pays for them every day."""
        if not digests:
            return
        known = self._decisions(repository_id, input_version)
        digests = {id_: bytes.fromhex(digest).hex() for id_, digest in digests.items()}
        expires = self._server.millis + self._retention
        decisions = self._server.state.decisions
        decisions[repository_id, input_version] = Kept({**known, **digests}, expires)

    def _decisions(self, repository_id: int, input_version: str) -> Mapping[int, str]:
        kept = self._server.state.decisions.get((repository_id, input_version))
        return self._server.living(kept) or {}

    async def bot_ids(self) -> frozenset[int]:
        """User ids that are or were the bot's."""
        return self._server.state.bot_ids

    async def add_bot_id(self, user_id: int) -> None:
        """Remember one."""
        self._server.state.bot_ids |= {user_id}

    async def save_report(self, report: Report, was: Report | None = None) -> bool:
        """Keep the artifact of a run that writes nothing else, for one retention, in the place of
        ``was``."""
        if await self.report(report.path) not in (was, report):
            return False
        expires = self._server.millis + self._retention
        self._server.state.reports[report.path] = Kept(report, expires)
        return True

    async def report(self, path: str) -> Report | None:
        """The artifact of a window."""
        return self._server.living(self._server.state.reports.get(path))


def _record(fields: Mapping[str, Any]) -> RepositoryRecord:
    try:
        return RepositoryRecord(**fields)
    except ValidationError as error:
        raise LedgerCorruptError(f"a stored RepositoryRecord cannot be read: {error}") from error
