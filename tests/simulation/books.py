"""What a schedule has done, and what must hold after each of its deeds.

Invariants I1 to I7 are looked at from outside, after each deed: on GitHub, in its log of requests,
and in the rows of the ledger. What a deed makes legitimate is written down when it is done, and
allows just that: a request that outlives every deadline may double one effect; a lost ledger takes
its claims along. Rules that no single state shows are in ``calls``.

Everything here is read without a copy, since it is read after each deed.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sandbox.github.clock import parse_stamp
from sandbox.github.requests import Logged
from sandbox.github.state import Comment, Issue
from tests.simulation.memory.rows import RunRow, State
from tests.simulation.violation import Violation
from tests.simulation.world import BOT, REPOSITORY, World
from triage.contract import Evidence, RunEffect, Status
from triage.identifiers import EffectKind
from triage.marker import Marker, MarkerKeys, Signature, read

WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})
_SCOPE = re.compile(
    r"/repos/[^/]+/[^/]+/issues"
    r"(?P<tail>|/\d+|/\d+/comments|/comments/(?P<comment>\d+)|/\d+/labels(/[^/]+)?)"
)
_VIEWED = re.compile(r"/repos/[^/]+/[^/]+/issues")
_METHODS = {"": "POST", "/N": "PATCH", "/N/comments": "POST"}


@lru_cache(maxsize=4096)
def valid_marker(body: str, keys: MarkerKeys) -> Marker | None:
    """The marker of a body, where its signature is valid."""
    reading = read(body, keys)
    return reading.marker if reading.signature is Signature.VALID else None


@dataclass
class Doubled:
    """An effect that a late request doubled. ``found``: the bot has to find it, and to converge."""

    found: bool


@dataclass(frozen=True)
class Spoiled:
    """A person changed the signature of a comment: when, in seconds, and the text that stands there
    since."""

    at: float
    text: str


@dataclass
class Books:
    """The books of one world. Times are seconds since the beginning.

    ``touched``: issues on which people acted. ``lag``: by how much views lag at most, in seconds.
    ``early``: how far the workers' clocks were moved, in seconds. ``alone``: no two hands move at
    once. ``labels``: those that people made; ``allowed``: those that the bot may use. ``losses``:
    when the ledger lost something. ``landed``: when a late request of an effect landed, ``sent``
    when it was claimed. ``removed``, ``deleted``, ``spoiled``: the bot's labels, comments and
    signatures that people took away, as far as the ledger knew them; ``deletions``: all of them.
    ``hurried``: effects whose proof a clock that was moved made short. ``forgotten``: what stood on
    GitHub, by effect and run, when the ledger lost something; ``suspected``: it took a restart for
    a loss. ``unmarked``: effects whose marker a person took off, so that another was sent in their
    place. ``accepted``: deliveries that were taken. ``reads``: lists that GitHub gave, with their
    time on the wall.
    """

    w: World
    touched: set[int] = field(default_factory=set)
    lag: float = 0.0
    early: float = 0.0
    alone: bool = True
    labels: set[str] = field(default_factory=set)
    allowed: set[str] = field(default_factory=set)
    losses: list[float] = field(default_factory=list)
    doubled: dict[str, Doubled] = field(default_factory=dict)
    landed: dict[str, float] = field(default_factory=dict)
    hurried: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)
    forgotten: set[tuple[str, str]] = field(default_factory=set)
    suspected: bool = False
    statuses: Counter[str] = field(default_factory=Counter)
    removed: dict[tuple[int, str], float] = field(default_factory=dict)
    deleted: dict[int, float] = field(default_factory=dict)
    deletions: int = 0
    spoiled: dict[int, Spoiled] = field(default_factory=dict)
    accepted: dict[str, float] = field(default_factory=dict)
    runs: dict[str, Status] = field(default_factory=dict)
    sent: dict[str, list[float]] = field(default_factory=dict)
    reads: list[tuple[str, float]] = field(default_factory=list)
    _frozen: dict[str, object] = field(default_factory=dict)
    _plans: dict[str, object] = field(default_factory=dict)
    _writes: list[Logged] = field(default_factory=list)
    _read: int = 0
    _forgiven: int = 0

    @property
    def state(self) -> State:
        """The ledger's rows, also while its server is down."""
        return self.w.server._state

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.w.clock.monotonic()

    # --- What befalls the ledger ----------------------------------------------------------------

    def ledger_lost(self, busy: int, *, all_gone: bool) -> None:
        """The server's state went back to an earlier one. What it lost is not asked of it again;
        what ``busy`` workers hold a claim for, and what is late, may still be written."""
        self.losses.append(self.now)
        self.forgotten |= {(marker.effect_key, marker.run) for marker in self._markers()}
        self.doubled = {key: Doubled(found=False) for key in self.doubled}
        self.scan()
        under_way = busy + sum(not each.hang.landed for each in self.w.github._late)
        open_ = sum(row.claim is not None for row in self.state.effects.values())
        self._forgiven = max(self._applied() + under_way - self._sends() + open_, 0)
        if all_gone:
            self._forgiven = self._applied() + under_way
        self._frozen.clear()
        self._plans.clear()
        self.accepted.clear()
        self.runs = {key: row.status for key, row in self.state.runs.items()}

    def received(self, guid: str, accepted: bool | None) -> None:
        """The receiver was given a delivery, and took it."""
        if accepted:
            self.require(guid not in self.accepted, "P: delivery", f"{guid} was taken twice")
            self.accepted[guid] = self.now

    # --- Late requests --------------------------------------------------------------------------

    def live(self) -> Counter[str]:
        """How often each effect key stands on GitHub, with a valid marker of the bot's."""
        return Counter(marker.effect_key for marker in self._markers())

    def late_landed(self, before: Counter[str]) -> None:
        """Requests landed that outlived every deadline. What they doubled must become one again
        where somebody is still to look for it: within a window of the second send."""
        window = self.w.timing.absence_window.total_seconds()
        for key, number in self.live().items():
            if number == before[key]:
                continue
            self.landed[key] = self.now
            sent = self.sent.get(key, [])
            row = self.state.effects.get(key)
            if number > 1 or (row is not None and row.claim is not None):
                in_time = len(sent) > 1 and self.now - sent[-1] + self.lag + self.early < window
                known = not self.losses or bool(sent and self.losses[-1] < sent[0])
                self.doubled[key] = Doubled(found=in_time and known)

    # --- After each deed ------------------------------------------------------------------------

    def check(self) -> None:
        """Everything that can be seen from outside. Raises Violation."""
        self.scan()
        self._one_of_each()
        self._claimed_before_written()
        for key, run in self.state.runs.items():
            self._run(key, run)
        for key, plan in self.state.plans.items():
            first = self._plans.setdefault(key, plan.value)
            same = first is plan.value or first == plan.value
            self.require(same, "P: plan freeze", f"{key} has another plan")
        self._incidents()
        strange = set(self.w.github.repository(REPOSITORY).labels) - self.labels
        self.require(not strange, "P: label exists", f"the bot made the labels {strange}")

    def _run(self, key: str, run: RunRow) -> None:
        before = self.runs.get(key)
        if before is not run.status:
            self.statuses[run.status] += 1
            self.runs[key] = run.status
            final = before is not None and before.final
            self.require(not final, "I6", f"{key} was {before}, and is {run.status}")
            if run.status is Status.COMPLETED:
                self._all_seen(key, run)
        if run.status.final:
            frozen = self._frozen.setdefault(key, run.effects)
            self.require(frozen == run.effects, "I6", f"the evidence of {key} has changed")
        if run.status is Status.FAILED_BEFORE_WRITE:
            own = [
                marker
                for marker in self._markers()
                if marker.run == key
                and marker.effect_key not in self.landed
                and (marker.effect_key, key) not in self.forgotten
            ]
            self.require(not own, "I4", f"{key}: before-write, and something is on GitHub")

    def _one_of_each(self) -> None:
        for key, number in self.live().items():
            excused = number <= 1 or key in self.doubled or key in self.unmarked
            self.require(excused, "I1", f"{number} live markers of {key[:12]}")

    def _claimed_before_written(self) -> None:
        applied, sends = self._applied(), self._sends() + self._forgiven
        self.require(applied <= sends, "I2", f"{applied} writes, {sends} claims")

    def _applied(self) -> int:
        return sum(entry.applied for entry in self._writes)

    def _sends(self) -> int:
        placed = [item for run in self.state.runs.values() for item in run.effects.values()]
        return sum(
            item.effect.sends for item in placed if item.effect.kind is not EffectKind.REPORT
        )

    def _incidents(self) -> None:
        counted = {
            name.removeprefix("incidents:"): number
            for name, number in self.state.counters.items()
            if name.startswith("incidents:") and number
        }
        # Views that lag still show what a person deleted, beside what was asked for anew.
        excused = self.landed or self.hurried or self.unmarked or (self.deletions and self.lag)
        duplicate = bool(counted.pop("duplicate", 0)) and not excused
        self.require(not duplicate, "P: incidents", "a duplicate, and nothing was late")
        lost = bool(counted.pop("ledger-lost", 0)) and not (self.losses or self.suspected)
        self.require(not lost, "P: incidents", "ledger-lost, and it was not")
        self.require(not counted, "P: incidents", str(counted))

    def scan(self) -> None:
        """New requests of the bot: each is within the scope (I5)."""
        entries = self.w.github.log.entries
        for entry in entries[self._read :]:
            if entry.method == "GET" and entry.status == 200 and "/issues" in entry.canonical:
                since = "creator" if "creator=" in entry.query else "since"
                name = _VIEWED.sub("", entry.canonical) or since
                at = parse_stamp(entry.time).timestamp()
                self.reads.append((name, at))
            elif is_write(entry):
                self._writes.append(entry)
                self._in_scope(entry)
        self._read = len(entries)

    def _in_scope(self, entry: Logged) -> None:
        found = _SCOPE.fullmatch(entry.canonical)
        own = found is not None
        if found is not None and found["comment"]:
            comment = self.comment(int(found["comment"]))
            own = comment is None or comment.author.login == BOT
        elif found is not None and "/labels" in found["tail"]:
            sent = set(re.findall(r'"([^"]+)"', entry.body)) - {"labels"}
            own = sent <= self.allowed and entry.method in ("POST", "DELETE")
        elif found is not None:
            shape = re.sub(r"\d+", "N", found["tail"])
            own = entry.method == _METHODS[shape]
            issue = self._issue(int(found["tail"][1:])) if shape == "/N" else None
            own = own and (issue is None or issue.author.login == BOT)
        self.require(own, "I5", f"{entry.method} {entry.canonical}")

    # --- What GitHub shows ----------------------------------------------------------------------

    def _markers(self) -> list[Marker]:
        repository, keys = self.w.github.repository(REPOSITORY), self.w.keys
        issues = [
            issue.history.latest.body
            for issue in repository.issues.values()
            if issue.author.login == BOT and issue.history.latest is not None
        ]
        comments = [
            comment.history.latest.body
            for comment in repository.comments.values()
            if comment.author.login == BOT and comment.history.latest is not None
        ]
        markers = (valid_marker(body or "", keys) for body in (*issues, *comments))
        return [marker for marker in markers if marker is not None]

    def comment(self, number: int) -> Comment | None:
        """A comment by its id, in whatever repository; also one that is gone."""
        repositories = self.w.github.repositories.values()
        found = (each.comments.get(number) for each in repositories)
        return next((comment for comment in found if comment is not None), None)

    def _issue(self, number: int) -> Issue | None:
        return self.w.github.repository(REPOSITORY).issues.get(number)

    def _all_seen(self, key: str, run: RunRow) -> None:
        """I3: every effect of a completed run was on GitHub as it was meant, or has a reason."""
        for placed in run.effects.values():
            effect = placed.effect
            if effect.evidence is Evidence.SKIPPED:
                self.require(bool(effect.reason), "I3", f"{key}: skipped without a reason")
                continue
            confirmed = effect.evidence is Evidence.CONFIRMED
            self.require(confirmed, "I3", f"{key}: {effect.target} is {effect.evidence}")
            self.require(self._was_there(effect), "I3", f"{key}: {effect.target} never was")

    def _was_there(self, effect: RunEffect) -> bool:
        match effect.kind:
            case EffectKind.COMMENT:
                comment = self.comment(effect.github_id or 0)
                own = comment is not None and comment.author.login == BOT
                return own and any(self._bears(s, effect) for s in comment.history.states)  # type: ignore[union-attr]
            case EffectKind.SUMMARY:
                issue = self._issue(effect.issue)
                own = issue is not None and issue.author.login == BOT
                return own and any(self._bears(s, effect) for s in issue.history.states)  # type: ignore[union-attr]
            case EffectKind.LABELS | EffectKind.UNLABEL:
                issue = self._issue(effect.issue)
                wanted = effect.kind is EffectKind.LABELS
                return issue is not None and any(
                    {label.name for label in state.labels} >= set(effect.labels)
                    if wanted
                    else not {label.name for label in state.labels} & set(effect.labels)
                    for state in issue.history.states
                    if state is not None
                )
            case _:
                return True

    def _bears(self, state: Any, effect: RunEffect) -> bool:
        marker = valid_marker(state.body or "", self.w.keys) if state is not None else None
        return marker is not None and (marker.effect_key, marker.digest) == (
            effect.effect_key,
            effect.digest,
        )

    # --- At the end -----------------------------------------------------------------------------

    def check_ended(self) -> None:
        """I7, and what was doubled is one again, and told of."""
        self.check()
        for key, run in self.state.runs.items():
            over = run.status.final or run.status is Status.NEEDS_REVIEW
            spent = run.status is Status.FAILED_BEFORE_WRITE and run.record.retry_at is None
            self.require(over or spent, "I7", f"{key} is {run.status}")
        live = self.live()
        unmarked = dict.fromkeys(self.unmarked, Doubled(found=not self.losses))
        for key, doubled in {**unmarked, **self.doubled}.items():
            if doubled.found:
                self.require(live[key] <= 1, "I1", f"{key[:12]} is still there {live[key]} times")
        removed = any(
            entry.method == "DELETE" and "/comments/" in entry.path for entry in self._writes
        )
        told = any(line.startswith("INCIDENT kind=duplicate") for line in self.w.lines)
        self.require(told or not removed, "P: incidents", "a duplicate went, and nobody told")

    def check_done(self) -> None:
        """Every issue that nobody touched is triaged, unless a run waits for a person or gave
        up."""
        if any(not status.final for status in self.runs.values()):
            return
        for issue in self.w.github.repository(REPOSITORY).issues.values():
            state = issue.history.latest
            if issue.author.login == BOT or state is None or issue.number in self.touched:
                continue
            self.require(bool(state.labels), "P: done", f"issue {issue.number} has no label")

    def writes_applied(self) -> int:
        """How many of the bot's writes GitHub carried out, reactions apart."""
        self.scan()
        return self._applied()

    def lift(self, issue: int | None = None) -> None:
        """Somebody forces: what people took away from this issue, or any, may come back."""
        gone = [place for place in self.removed if issue in (None, place[0])]
        for place in gone:
            del self.removed[place]
        for number in [number for number in self.deleted if issue in (None, number)]:
            del self.deleted[number]

    def unforgotten(self, at: float) -> bool:
        """Whether the ledger lost nothing since."""
        return not any(lost >= at for lost in self.losses)

    def require(self, holds: object, invariant: str, what: str) -> None:
        """Raise Violation unless it holds."""
        if not holds:
            raise Violation(invariant, what)


def is_write(entry: Logged) -> bool:
    """A write of the bot's, reactions apart."""
    return (
        entry.method in WRITES and entry.who == BOT and not entry.canonical.endswith("/reactions")
    )
