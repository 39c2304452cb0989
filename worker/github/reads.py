"""GET, tried again a few times; one thing, or all pages of a list.

Invariant: a rate limit is not slept out. A pause that long would outlive every lease: the caller
is told when to come back.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from worker.github.auth import Authority, NoToken
from worker.github.connection import Answer, Connection, RequestKind
from worker.github.failures import GONE, NoAnswer, Reading, Verdict
from worker.ports import Clock, Gone, ReadFailed

PAUSE_SECONDS: Final = (0.5, 1.0, 2.0)
"""Before the second, third and fourth try of a read; there is no fifth."""

MOST_PAGES: Final = 1000
MOST_REDIRECTS: Final = 2

Shape = TypeVar("Shape", bound=BaseModel)


class Reads:
    """Asks GitHub in the name of an installation, of the App, of an account, or of nobody."""

    def __init__(self, connection: Connection, authority: Authority, clock: Clock) -> None:
        self._connection = connection
        self._authority = authority
        self._clock = clock

    async def one(self, shape: type[Shape], path: str, asker: str) -> Shape:
        """A thing that must be there. Raises ReadFailed, also where it is gone."""
        found = await self.find(shape, path, asker)
        if isinstance(found, Gone):
            raise ReadFailed(f"GET {path}: {found}", permanent=True)
        return found

    async def find(
        self, shape: type[Shape], path: str, asker: str, *, follow: bool = False
    ) -> Shape | Gone:
        """A thing, or why it is gone; ``follow`` finds a renamed one. Raises ReadFailed."""
        for _ in range(MOST_REDIRECTS + 1 if follow else 1):
            answer = await self.read_with_retry(path, asker, shape=shape)
            if answer.reading.verdict is Verdict.DONE:
                return shape.model_validate(answer.content)
            if answer.reading.verdict is not Verdict.MOVED or answer.location is None:
                break
            path = answer.location
        return GONE[answer.reading.verdict]

    async def all(
        self,
        shape: type[Shape],
        path: str,
        asker: str,
        query: Mapping[str, str] | None = None,
        *,
        within: str = "",
    ) -> list[Shape]:
        """All pages of a list that must be there. Raises ReadFailed, also where it is gone."""
        found = await self.pages(shape, path, asker, query, within=within)
        if isinstance(found, Gone):
            raise ReadFailed(f"GET {path}: {found}", permanent=True)
        return found

    async def pages(
        self,
        shape: type[Shape],
        path: str,
        asker: str,
        query: Mapping[str, str] | None = None,
        *,
        within: str = "",
    ) -> list[Shape] | Gone:
        """All pages of a list, or why it is gone. ``within`` is the key that holds the list.

        GitHub's own link leads to the next page: some of its lists are paged by a cursor.
        """
        found: list[Shape] = []
        page: str | None = path
        asked: Mapping[str, str] | None = {**(query or {}), "per_page": "100"}
        for _ in range(MOST_PAGES):
            if page is None:
                return found
            answer = await self.read_with_retry(page, asker, asked, shape=shape, within=within)
            if answer.reading.verdict is not Verdict.DONE:
                return GONE[answer.reading.verdict]
            found += [shape.model_validate(item) for item in _items(answer.content, within)]
            page, asked = answer.next_page, None
        raise ReadFailed(f"GET {path}: more than {MOST_PAGES} pages", permanent=True)

    async def read_with_retry(
        self,
        path: str,
        asker: str,
        query: Mapping[str, str] | None = None,
        *,
        shape: type[BaseModel],
        within: str | None = None,
    ) -> Answer:
        """Tried again after a 5xx, a time-out, a drop and an answer that cannot be read.

        Gives an answer that is done, and of that shape (``within``: a list of it), or one whose
        verdict is in GONE. Raises ReadFailed.
        """
        reading = Reading(Verdict.BROKEN, "not asked")
        for pause in (0.0, *PAUSE_SECONDS):
            if pause:
                await self._clock.sleep(pause)
            try:
                answer = await self._ask(path, asker, query)
                reading = answer.reading
                if reading.verdict is Verdict.DONE:
                    _check(answer.content, shape, within)
                    return answer
                if reading.verdict in GONE:
                    return answer
            except NoToken as error:
                reading = error.reading
            except NoAnswer as error:
                reading = Reading(Verdict.BROKEN, str(error))
            except ValidationError as error:
                reading = Reading(Verdict.BROKEN, _unreadable(error))
            if reading.verdict is not Verdict.BROKEN:
                break
        raise ReadFailed(
            f"GET {path.partition('?')[0]}: {reading.detail}",
            retry_at=reading.retry_at,
            permanent=reading.verdict not in (Verdict.BROKEN, Verdict.LIMITED),
        )

    async def _ask(self, path: str, asker: str, query: Mapping[str, str] | None) -> Answer:
        """One GET; where GitHub refuses a token that was kept, once more with a fresh one."""
        authorization = await self._authority.header(asker)
        answer = await self._send(path, authorization, query)
        unauthorised = answer.reading.verdict is Verdict.UNAUTHORISED
        if unauthorised and self._authority.evict(asker, authorization):
            answer = await self._send(path, await self._authority.header(asker), query)
        return answer

    async def _send(self, path: str, authorization: str, query: Mapping[str, str] | None) -> Answer:
        return await self._connection.send_once(
            RequestKind.READ, "GET", path, authorization=authorization, query=query
        )


def _check(content: Any, shape: type[BaseModel], within: str | None) -> None:
    for item in [content] if within is None else _items(content, within):
        shape.model_validate(item)


def _items(content: Any, within: str) -> list[Any]:
    """The list of a page; an item that fits no shape where there is none, so that it is noticed."""
    items = content.get(within) if within and isinstance(content, dict) else content
    return items if isinstance(items, list) else [None]


def _unreadable(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    return f"the answer cannot be read: {'.'.join(map(str, first['loc']))} {first['msg']}"
