"""Rules that no single state shows, looked at where a worker makes the call that they are about."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.records import Claim, Granted, Lease
from tests.simulation.books import Books, Doubled, is_write
from tests.simulation.hands import Hand
from tests.simulation.memory.rows import EffectRow, LeaseRow, RunRow, State
from triage.contract import Evidence, RunEffect, Status
from triage.identifiers import EffectKind
from triage.readback import SAMPLES
from worker.ports import Comment, Landed

READS = frozenset({"reader.comment", "reader.comments", "reader.issue_comments"})
"""What shows comments."""


@dataclass
class Calls:
    """The calls of all hands of one world, against its books.

    What stands before a call is noted by hand; ``_claimed`` has the time of each claim, ``_asked``
    that of the last request for each effect, in the server's seconds; ``_read`` when a hand last
    read a comment, ``_seen`` when that was read which confirmed a run's effect.
    """

    books: Books
    _noted: dict[str, Any] = field(default_factory=dict)
    _claimed: dict[str, float] = field(default_factory=dict)
    _granted: set[str] = field(default_factory=set)
    _asked: dict[str, float] = field(default_factory=dict)
    _read: dict[tuple[str, int], float] = field(default_factory=dict)
    _seen: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def losses(self) -> list[float]:
        """When the ledger lost something, in seconds."""
        return self.books.losses

    @property
    def state(self) -> State:
        """The ledger's rows."""
        return self.books.state

    def _require(self, holds: object, invariant: str, what: str) -> None:
        self.books.require(holds, invariant, what)

    def before(self, hand: Hand, call: str, args: Any) -> None:
        """A call of a hand happens now; nothing comes between this and what the ledger does."""
        part, _, method = call.partition(".")
        if part == "writer" and method != "react":
            self._noted[hand.name] = self._before_write(hand, method, args)
        elif call == "effects.claim":
            self._noted[hand.name] = self.state.effects.get(args[1].effect_key, EffectRow())
        elif call == "leases.acquire":
            run = self.state.runs.get(args[0])
            claimed = 0 if run is None else run.claimed
            self._noted[hand.name] = (self.state.leases.get(args[0]), claimed)
        elif call in READS:
            self._noted[hand.name] = self.books.now
        elif call in ("runs.save", "runs.settle"):
            key = args[0].dedupe_key
            self._noted[hand.name] = (
                self.state.runs.get(key),
                self.state.leases.get(key),
            )

    def after(self, hand: Hand, call: str, args: Any, result: object) -> None:
        """It has happened, and came to this."""
        part, _, method = call.partition(".")
        if part == "writer" and method != "react":
            self._after_write(hand, result)
        elif isinstance(result, Claim):
            self._claim(hand, result, self._noted[hand.name])
        elif call == "leases.acquire" and isinstance(result, Lease):
            self._acquired(result, *self._noted[hand.name])
        elif call in READS:
            shown = result if isinstance(result, list) else [result]
            ids = [item.id for item in shown if isinstance(item, Comment)]
            self._read |= {(hand.name, number): self._noted[hand.name] for number in ids}
        elif call == "runs.save_effects":
            self._confirmed(hand, args[0].dedupe_key, args[1])
        elif call in ("runs.save", "runs.settle"):
            self._saved(args[0], *self._noted[hand.name])
            self._signed(args[0].dedupe_key, self.state.runs.get(args[0].dedupe_key))
        elif isinstance(result, Granted):
            self._require(
                args[0] == self.books.w.installation, "P: pacing", f"a budget of {args[0]}"
            )
            self._granted.add(hand.name)

    def _before_write(self, hand: Hand, method: str, args: Any) -> tuple[int, bool]:
        claim: Claim = args[0]
        effect, late = claim.effect, self.books.now > claim.deadline
        row = self.state.effects.get(effect.effect_key, EffectRow())
        stands = row.claim is not None and row.claim.operation == claim.operation
        lost = any(at >= self._claimed.get(claim.operation, 0.0) for at in self.books.losses)
        known = claim.operation in self._claimed
        self._require(known and (stands or late or lost), "I2", f"{method} without its claim")
        paced = effect.kind is EffectKind.REMOVAL or hand.name in self._granted
        self._require(paced, "P: pacing", f"{method} without room in the budget")
        self._granted.discard(hand.name)
        if effect.kind.creates and not late:
            self._asked[effect.effect_key] = self.books.w.server.millis / 1000
        run = self.state.runs.get(claim.lease.dedupe_key)
        if run is not None and not late and not run.force:
            self._people_win(hand, method, effect)
        if run is not None and method == "add_labels" and not late and not lost:
            self._comment_first(run, effect)
        return len(self.books.w.github.log.entries), late

    def _after_write(self, hand: Hand, result: object) -> None:
        began, late = self._noted[hand.name]
        if not self.books.alone:
            return
        sent = [entry for entry in self.books.w.github.log.entries[began:] if is_write(entry)]
        self._require(len(sent) <= 1, "P: sent once", f"{len(sent)} requests of one claim")
        self._require(not (late and sent), "P: deadline", "a request after its claim's deadline")
        if isinstance(result, Landed):
            applied = bool(sent) and sent[0].applied
            self._require(applied, "P: acknowledged", "GitHub did nothing of the kind")

    def _people_win(self, hand: Hand, method: str, effect: RunEffect) -> None:
        """What a person took away, and the bot knows of, is not put back by a job begun later."""
        if method == "create_comment" and effect.issue in self.books.deleted:
            known = self.books.unforgotten(self.books.deleted[effect.issue])
            self._require(not known, "P: tombstone", f"a second comment on issue {effect.issue}")
        if method != "add_labels":
            return
        for label in effect.labels:
            at = self.books.removed.get((effect.issue, label))
            known = (
                at is not None and hand.began > at + self.books.lag and self.books.unforgotten(at)
            )
            self._require(not known, "P: people win", f"{label!r} again on issue {effect.issue}")

    def _comment_first(self, run: RunRow, effect: RunEffect) -> None:
        for placed in run.effects.values():
            other = placed.effect
            if other.kind is not EffectKind.COMMENT or other.issue_id != effect.issue_id:
                continue
            open_ = other.in_doubt or other.evidence in (Evidence.ABSENT, Evidence.CONFLICT)
            self._require(not open_, "P: comment before label", f"issue {effect.issue}")

    def _claim(self, hand: Hand, claim: Claim, old: EffectRow) -> None:
        run_key, effect, epoch = claim.lease.dedupe_key, claim.effect, self.state.epoch
        run = self.state.runs[run_key]
        self._claimed[claim.operation] = self.books.now
        standing = epoch is not None and epoch.replid == self.books.w.server.replid
        quiet = epoch is not None and self.books.w.server.millis < epoch.quiet_until
        self._require(standing and not quiet, "P: epoch", "a claim in a ledger that was lost")
        other = bool(old.holder) and old.holder != run_key
        self._require(not other, "P: one claim", f"{old.holder} has it")
        newer = (old.writer_fence or 0) > run.snapshot_fence
        self._require(not newer, "P: superseded", "a later snapshot's words are written over")
        dead = bool(old.tombstone) and not run.force
        self._require(not dead, "P: tombstone", f"{effect.kind} of issue {effect.issue}")
        if effect.kind.creates and effect.github_id is None:
            if old.pending:
                self._proved(effect, self._asked.get(effect.effect_key, 0.0))
            self._creates(hand, effect.effect_key)

    def _proved(self, effect: RunEffect, sent_at: float) -> None:
        """What may have landed is sent again after five reads of both views, over a window."""
        self.books.scan()
        summary = effect.kind is EffectKind.SUMMARY
        views = ("creator", "since") if summary else (f"/{effect.issue}/comments", "/comments")
        window = self.books.w.timing.absence_window.total_seconds() - self.books.early - 2
        for view in views:
            times = [at for name, at in self.books.reads if name == view and at >= sent_at - 1]
            enough = len(times) >= SAMPLES and times[-1] - times[0] >= window
            self._require(enough, "P: proof", f"{len(times)} reads of {view} before a second send")

    def _creates(self, hand: Hand, key: str) -> None:
        """A create may be sent. Where an earlier one landed late after its worker had looked, or
        when no view showed it yet, the two must become one again."""
        window = self.books.w.timing.absence_window.total_seconds()
        asked = self._asked.get(key)
        short = asked is not None and self.books.w.server.millis / 1000 - asked < window
        if short and self.books.early:
            self.books.hurried.add(key)
            self.books.doubled.setdefault(key, Doubled(found=True))
        self.books.sent.setdefault(key, []).append(self.books.now)
        landed = self.books.landed.get(key)
        if landed is not None and hand.began <= landed + self.books.lag + self.books.early:
            self.books.doubled.setdefault(key, Doubled(found=self.books.unforgotten(landed)))

    def _acquired(self, lease: Lease, old: LeaseRow | None, claimed: int) -> None:
        if old is None or old.fence == lease.fence or not claimed or not old.until:
            return
        free_at = old.until + self.books.w.timing.lock_delay.total_seconds() * 1000
        early = self.books.w.server.millis < free_at
        self._require(not early, "P: lock delay", f"{lease.dedupe_key} is taken over")

    def _saved(self, lease: Lease, before: RunRow | None, holder: LeaseRow | None) -> None:
        now = self.state.runs.get(lease.dedupe_key)
        if now is None or (before is not None and before.status is now.status):
            return
        current = (
            holder is not None
            and (holder.token, holder.fence) == (lease.token, lease.fence)
            and self.books.w.server.millis < holder.until
        )
        self._require(current, "I6", f"{lease.dedupe_key} became {now.status}")

    def _confirmed(self, hand: Hand, run: str, effects: Sequence[RunEffect]) -> None:
        for effect in effects:
            if effect.evidence is Evidence.CONFIRMED:
                at = self._read.get((hand.name, effect.github_id or 0), hand.began)
                self._seen[run, effect.effect_key] = at

    def _signed(self, key: str, run: RunRow | None) -> None:
        """What a run confirms bears a signature that it could verify: unless it was read when a
        view might still show what stood there before."""
        if run is None or run.status is not Status.COMPLETED:
            return
        for placed in run.effects.values():
            effect = placed.effect
            spoiled = self.books.spoiled.get(effect.github_id or 0)
            at = self._seen.get((key, effect.effect_key))
            if spoiled is None or at is None or at <= spoiled.at + self.books.lag:
                continue
            comment = self.books.comment(effect.github_id or 0)
            state = comment.history.latest if comment is not None else None
            bad = state is not None and state.body == spoiled.text
            self._require(not bad, "P: signature", f"{effect.target} is confirmed")
