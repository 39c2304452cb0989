"""What an object was at each time, so that a view may show it as it was a while ago."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Generic, Protocol, TypeVar

State = TypeVar("State")


class History(Generic[State]):
    """The states of one object in order of time. `None` means it is not there (any more)."""

    __slots__ = ("latest", "states", "times")

    def __init__(self, at: datetime, state: State) -> None:
        self.latest: State | None = state
        self.times = [at]
        self.states: list[State | None] = [state]

    def put(self, at: datetime, state: State | None) -> None:
        self.latest = state
        self.times.append(at)
        self.states.append(state)

    def as_of(self, cutoff: datetime) -> State | None:
        """The state that everything written after `cutoff` had not touched yet."""
        for index in range(len(self.times) - 1, -1, -1):
            if self.times[index] <= cutoff:
                return self.states[index]
        return None

    def candidates(self, cutoff: datetime) -> list[State | None]:
        """The state as of `cutoff` and each later one."""
        later = [s for t, s in zip(self.times, self.states, strict=True) if t > cutoff]
        return [self.as_of(cutoff), *later]


class Sight(Protocol):
    """How one read sees the world."""

    def see(self, history: History[State]) -> State | None: ...

    def sees(self, at: datetime) -> bool:
        """Whether something that happened once, at `at`, is visible."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """As it was at `cutoff`."""

    cutoff: datetime

    def see(self, history: History[State]) -> State | None:
        return history.as_of(self.cutoff)

    def sees(self, at: datetime) -> bool:
        return at <= self.cutoff


@dataclass(frozen=True, slots=True)
class Flapping:
    """Each object is shown as of `cutoff` or in any of its later states, by the dice."""

    cutoff: datetime
    dice: Random

    def see(self, history: History[State]) -> State | None:
        if history.times[-1] <= self.cutoff:
            return history.latest
        return self.dice.choice(history.candidates(self.cutoff))

    def sees(self, at: datetime) -> bool:
        return at <= self.cutoff or self.dice.random() < 0.5


FRESH = AsOf(datetime.max.replace(tzinfo=UTC))


def before(moment: datetime, seconds: float) -> datetime:
    return moment - timedelta(seconds=seconds)
