"""Named instants of a run, at each call of a port: what happens there, and who dies there."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ledger.records import Unclaimed


class Killed(BaseException):
    """The worker is gone, at this very instant."""


class Faulty:
    """A port whose calls can be met: ``before`` and ``after`` a method a function runs, once. What
    is given before it keeps the call from happening."""

    def __init__(self, port: object, name: str, faults: "Faults") -> None:
        self._port = port
        self._name = name
        self._faults = faults

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._port, method)
        if method == "within":
            return lambda inputs: Faulty(real(inputs), self._name, self._faults)
        if not asyncio.iscoroutinefunction(real):
            return real

        async def met(*args: Any, **kwargs: Any) -> Any:
            instead = await self._faults.meet(f"before {self._name}.{method}", args)
            if instead is not None:
                return instead
            result = await real(*args, **kwargs)
            self._faults.saw(f"{self._name}.{method}", args, result)
            instead = await self._faults.meet(f"after {self._name}.{method}", args)
            return result if instead is None else instead

        return met


Deed = Callable[[], Awaitable[object]]


@dataclass
class Armed:
    """A deed at a point, when it is passed for the last of ``left`` times."""

    point: str
    when: Callable[[Any], bool]
    do: Deed
    left: int


@dataclass
class Faults:
    """What happens at named instants: a point, with which arguments, and what then, once each."""

    armed: list["Armed"] = field(default_factory=list)

    def at(
        self, point: str, do: Deed, when: Callable[[Any], bool] = lambda _: True, *, nth: int = 1
    ) -> None:
        """Run ``do`` the n-th time from now that ``point`` is passed with arguments that fit."""
        self.armed.append(Armed(point, when, do, nth))

    def kill_at(self, point: str, when: Callable[[Any], bool] = lambda _: True) -> None:
        """The worker dies there."""
        self.lose_at(point, Killed(point), when)

    def lose_at(
        self, point: str, error: BaseException, when: Callable[[Any], bool] = lambda _: True
    ) -> None:
        """The call happens, and its caller gets this error instead of the reply."""

        async def lose() -> None:
            raise error

        self.at(point, lose, when)

    def unsure_at(
        self, point: str, when: Callable[[Any], bool] = lambda _: True, *, nth: int = 1
    ) -> None:
        """A claim is recorded, and its reply is lost."""

        async def unsure() -> Unclaimed:
            return Unclaimed.UNSURE

        self.at(point, unsure, when, nth=nth)

    def saw(self, call: str, args: Any, result: object) -> None:
        """What a call came to, whatever its caller gets to know of it."""

    async def meet(self, point: str, args: Any) -> object:
        """A point is passed; what its deed gives replaces the call's result, None does not."""
        for entry in list(self.armed):
            if entry.point == point and entry.when(args):
                entry.left -= 1
                if entry.left:
                    continue
                self.armed.remove(entry)
                given = await entry.do()
                if isinstance(given, Unclaimed):
                    return given
        return None


@dataclass
class DiesAt(Faults):
    """The worker dies at the n-th point that it passes, whichever that is."""

    left: int = 0

    async def meet(self, point: str, args: Any) -> object:
        """One more."""
        self.left -= 1
        if self.left == 0:
            raise Killed(point)
        return await super().meet(point, args)

    @property
    def died(self) -> bool:
        """Whether it came so far."""
        return self.left <= 0
