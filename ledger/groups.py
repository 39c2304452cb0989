"""What arrives while as much as may be is under way is done next, together.

One who is alone is done at once; under load the groups grow by themselves, and the cost of a round
trip is shared. There is no waiting for more to come.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Groups(Generic[Item, Outcome]):
    """Calls ``work`` with at most ``most`` items, at most ``at_once`` calls at a time; it answers
    one outcome each.

    Where it raises, each of the group gets that, and nobody else: one connection that was lost is
    no reason to refuse who waited.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Coroutine[Any, Any, Sequence[Outcome]]],
        *,
        most: int,
        at_once: int = 1,
    ) -> None:
        self._work = work
        self._most = most
        self._at_once = at_once
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._under_way: set[asyncio.Task[Sequence[Outcome]]] = set()
        self._is_called = False

    def join(self, item: Item) -> "asyncio.Future[Outcome]":
        """The outcome of this item. Who is cancelled leaves; what is under way goes on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((item, future))
        if len(self._under_way) < self._at_once and not self._is_called:
            self._is_called = True
            loop.call_soon(self._begin)  # whoever joins in this turn of the loop comes along
        return future

    def _begin(self) -> None:
        self._is_called = False
        while len(self._under_way) < self._at_once and (group := self._next()):
            work = self._work([item for item, _ in group])
            task = asyncio.get_running_loop().create_task(work)
            self._under_way.add(task)
            task.add_done_callback(partial(self._end, [future for _, future in group]))

    def _next(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        """Who is done next; empty where nobody waits."""
        group: list[tuple[Item, asyncio.Future[Outcome]]] = []
        while self._waiting and len(group) < self._most:
            item, future = self._waiting.popleft()
            if not future.done():
                group.append((item, future))
        return group

    def _end(
        self, futures: list[asyncio.Future[Outcome]], done: asyncio.Task[Sequence[Outcome]]
    ) -> None:
        self._under_way.discard(done)
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            for future, outcome in zip(futures, done.result(), strict=True):
                if not future.done():
                    future.set_result(outcome)
        else:
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        self._begin()
