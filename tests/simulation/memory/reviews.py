"""What is remembered of reviews: the translation of ``ledger.reviews``."""

from ledger.errors import StateNotSavedError
from ledger.memory import (
    RECALLS_WITH_A_REVIEW,
    Cleared,
    Promotion,
    Recall,
    ReviewState,
    StagedSession,
)
from ledger.records import Lease
from ledger.reviews import RECALLS_KEPT, REPLACED_KEPT
from ledger.sessions import SESSION_KEPT
from ledger.timing import LedgerTiming, milliseconds
from tests.simulation.memory.evidence import guarded
from tests.simulation.memory.rows import Kept, ReviewRow, sealed
from tests.simulation.memory.server import MemoryServer
from tests.simulation.memory.sessions import session, staged_copy
from triage.identifiers import Family


class MemoryReviews:
    """The last review of each repository, and how well resumed runs recalled the one before."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def last(self, repository_id: int, family: Family = Family.REVIEW) -> ReviewState | None:
        """The last review, as the next one needs it. Without session where that was cleared."""
        row = self._server.living(self._server.state.reviews.get((repository_id, family)))
        if row is None:
            return None
        recalls = self._recalls(repository_id, family)[:RECALLS_WITH_A_REVIEW]
        state = row.state.model_copy(update={"recalls": recalls})
        if row.cleared is None:
            return state
        gone = {"session_id": None, "session_length": 0, "session_since": None}
        return state.model_copy(update={**gone, "cleared": row.cleared})

    async def recalls(self, repository_id: int, limit: int = RECALLS_KEPT) -> tuple[Recall, ...]:
        """The figures of the last runs that resumed, newest first."""
        return self._recalls(repository_id, Family.REVIEW)[:limit]

    def _recalls(self, repository_id: int, family: Family) -> tuple[Recall, ...]:
        kept = self._server.living(self._server.state.recalls.get((repository_id, family)))
        return kept or ()

    async def clear_session(self, lease: Lease, staged: StagedSession, reason: str) -> bool:
        """Give the session up that an attempt resumed, so that the next window starts cold."""
        if staged.session_id is None:
            return False
        server, where = self._server, (staged.repository_id, Family.REVIEW)
        cleared = Cleared(session_id=staged.session_id, run=lease.dedupe_key, reason=reason)
        guarded(server, lease)
        row = server.living(server.state.reviews.get(where))
        if row is None:
            return False
        if row.cleared is not None:
            return row.cleared == cleared
        if (row.state.session_id, row.state.session_length) != (staged.session_id, staged.length):
            return False
        kept = server.state.reviews[where]
        server.state.reviews[where] = kept._replace(value=row._replace(cleared=cleared))
        server.state.sessions.pop((staged.repository_id, staged.session_id), None)
        return True


def require_whole(server: MemoryServer, promotion: Promotion) -> None:
    """Raise StateNotSavedError where the copy, or what it continues, is not all there."""
    state, copy = promotion.state, promotion.copy
    if copy is None:
        return
    if len(session(server, state.repository_id, state.session_id)) < copy.length:
        raise StateNotSavedError(
            "the session that was resumed is shorter than the snapshot says, or gone"
        )
    if len(staged_copy(server, copy)) != state.session_length - copy.length:
        raise StateNotSavedError(
            "the attempt's copy of the session does not have as many lines as it was given"
        )


def promote(server: MemoryServer, promotion: Promotion, timing: LedgerTiming) -> None:
    """The copy becomes the session, and the review the last one, unless a newer one stands."""
    given, tables = promotion.state, server.state
    where = given.repository_id, given.family
    old = server.living(tables.reviews.get(where))
    if old is not None and old.state.fence > given.fence:
        return
    if promotion.copy is not None and given.session_id is not None:
        _continue(server, promotion.copy, given.session_id)
    if old is not None and old.cleared is None and old.state.session_id != given.session_id:
        _let_expire(server, given.repository_id, old.state.session_id)
    expires = server.millis + milliseconds(timing.retention)
    bare = sealed(given.model_copy(update={"recalls": (), "cleared": None}))
    tables.reviews[where] = Kept(ReviewRow(bare), expires)
    if promotion.recall is not None:
        recalls = server.living(tables.recalls.get(where)) or ()
        tables.recalls[where] = Kept((promotion.recall, *recalls)[:RECALLS_KEPT], expires)


def _continue(server: MemoryServer, copy: StagedSession, session_id: str) -> None:
    base = session(server, copy.repository_id, copy.session_id)[: copy.length]
    added = staged_copy(server, copy)
    expires = server.millis + milliseconds(SESSION_KEPT)
    server.state.sessions[copy.repository_id, session_id] = Kept((*base, *added), expires)
    del server.state.copies[copy.name]


def _let_expire(server: MemoryServer, repository_id: int, session_id: str | None) -> None:
    """An attempt may be at it still."""
    place = repository_id, session_id or ""
    if lines := session(server, *place):
        server.state.sessions[place] = Kept(lines, server.millis + milliseconds(REPLACED_KEPT))
