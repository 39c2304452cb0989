"""Effects as all runs share them: ``effect:{effect_key}``, and ``github:{repository id}``.

Invariant: nothing is sent to GitHub without a claim that was recorded here first, and a claim is
made only where no earlier request can still make a second thing appear.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import redis.asyncio

from ledger.codec import moment, moment_or_none, parsed, stamp, text, texts
from ledger.connection import answered
from ledger.counters import Counters
from ledger.effect_scripts import ACKNOWLEDGE, ADD_SAMPLE, ADOPT, CLAIM, NOTE_HIT, WITHDRAW
from ledger.errors import LedgerUnavailableError
from ledger.evidence import fact
from ledger.lease import lease_key
from ledger.records import Claim, EffectRecord, Holding, Lease, Unclaimed
from ledger.runs import run_key
from ledger.scripts import Script, passed, proof
from ledger.timing import LedgerTiming, milliseconds
from triage.contract import Evidence, RunEffect
from triage.identifiers import EffectKind


def effect_name(effect_key: str) -> str:
    """Where an effect is."""
    return f"effect:{effect_key}"


class Effects:
    """Effects as all runs share them.

    ``monotonic`` must be the clock on which the writer tests a claim's deadline, in seconds.
    """

    def __init__(
        self,
        redis: redis.asyncio.Redis,
        timing: LedgerTiming,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = redis
        self._monotonic = monotonic
        self._margin = timing.margin.total_seconds()
        self._need = milliseconds(timing.request + timing.margin)
        self._absence_window = milliseconds(timing.absence_window)
        self._counters = Counters(redis)
        self._claim = Script(redis, CLAIM)
        self._acknowledge = Script(redis, ACKNOWLEDGE)
        self._withdraw = Script(redis, WITHDRAW)
        self._add_sample = Script(redis, ADD_SAMPLE)
        self._note_hit = Script(redis, NOTE_HIT)
        self._adopt = Script(redis, ADOPT)

    async def get(self, keys: Sequence[str]) -> dict[str, EffectRecord]:
        """Those that are known, by key."""
        if not keys:
            return {}
        with answered():
            async with self._redis.pipeline(transaction=False) as reads:
                reads.hget("epoch", "id")
                for key in keys:
                    reads.hgetall(effect_name(key))
                epoch, *hashes = await reads.execute()
        return {
            key: _record(key, texts(fields), text(epoch))
            for key, fields in zip(keys, hashes, strict=True)
            if fields
        }

    async def claim(
        self, lease: Lease, effect: RunEffect, *, snapshot_fence: int, resend: bool, operation: str
    ) -> Claim | Unclaimed:
        """The one claim before each request, in one script: owner, fence and epoch; the remaining
        lease longer than the request timeout plus a margin; not held by another run; not
        superseded by a later snapshot's write; no tombstone and no label that a person removed,
        unless the run is forced. It records the intent in the effect and in the run (unsettled,
        open, sent at, one send more).

        ``resend``: the last send was proved absent, so this run's own holding does not refuse. A
        create is refused as UNPROVED all the same while the shared record knows an id, or an
        earlier send without five empty reads over the absence window since.

        The same ``operation`` asked again finds its own claim, as long as it is open: that is how
        UNSURE (its own reply was lost) is re-read. FrozenRunError, UnknownRunError: the run is
        over, or was never saved.

        Why sending before ``deadline`` is safe: it is one margin after a moment *before* the script
        was sent. The script ran later than that moment and found that the lease lasts longer than
        a request and a margin from then on. So a request that starts before the deadline, and that
        its own time-out ends, is over before the lease can be anyone else's.
        """
        deadline = self._monotonic() + self._margin
        sending = effect.model_copy(
            update={"evidence": Evidence.UNSETTLED, "open": True, "reason": ""}
        )
        key, run = effect.effect_key, lease.dedupe_key
        try:
            word, *raw = await self._claim(
                [lease_key(run), run_key(run), effect_name(key)],
                [
                    *proof(lease),
                    run,
                    json.dumps(fact(sending, run)),
                    snapshot_fence,
                    int(resend),
                    operation,
                    self._need,
                    self._absence_window,
                ],
            )
        except LedgerUnavailableError:
            return Unclaimed.UNSURE
        if word in (b"frozen", b"unknown-run"):
            passed(word, run)
        if word != b"claimed":
            return Unclaimed(text(word))
        return Claim(lease, _placed(raw[0]), operation, deadline)

    async def stands(self, effect_key: str, operation: str) -> bool:
        """Whether a claim was recorded and is open: for whoever only wants to know."""
        with answered():
            return text(await self._redis.hget(effect_name(effect_key), "claim")) == operation

    async def acknowledge(self, claim: Claim, effect: RunEffect) -> None:
        """Record the outcome of a claimed request, with or without a live lease: evidence in the
        run, id, digest and last writer in the shared record; the claim is closed.

        ``effect.sends`` is taken as it is: a refused request is no send. Where a successor settled
        the effect meanwhile, or the run is over, only a GitHub id is kept.
        """
        run = claim.lease.dedupe_key
        await self._acknowledge(
            [run_key(run), effect_name(effect.effect_key)],
            [claim.operation, run, json.dumps(fact(effect, run))],
        )

    async def withdraw(self, claim: Claim) -> None:
        """Undo a claim whose request was certainly not sent, or that was UNSURE: where its script
        comes only after this, it is refused."""
        key = claim.effect.effect_key
        keys = [run_key(claim.lease.dedupe_key), effect_name(key)]
        await self._withdraw(keys, [claim.operation, key])

    async def add_sample(self, effect_key: str, at: datetime) -> tuple[datetime, ...]:
        """Add the time of an empty read; gives all of them since the last send."""
        times = await self._add_sample([effect_name(effect_key)], [stamp(at)])
        return _samples(text(times))

    async def note_hit(
        self, effect_key: str, github_id: int, url: str, digest: str, issue: int = 0
    ) -> None:
        """Somebody saw the effect on GitHub (a sample, or a webhook of the bot's own comment).

        Of two ids the lower one is kept. ``issue`` is the number of a summary issue, which nobody
        knows before. Nothing is settled by it.
        """
        arguments = [effect_key, str(github_id), url, digest, str(issue)]
        await self._note_hit([effect_name(effect_key)], arguments)

    async def note_removed_label(self, effect_key: str, label: str) -> None:
        """A person removed a label that the bot had added. The key is the ``labels`` effect's."""
        with answered():
            async with self._redis.pipeline(transaction=True) as writes:
                writes.hdel(effect_name(effect_key), f"own:{label}")
                writes.hset(effect_name(effect_key), f"removed:{label}", "1")
                await writes.execute()

    async def note_tombstone(self, effect_key: str) -> None:
        """A person deleted the bot's comment: its id is forgotten, the fact is kept."""
        with answered():
            async with self._redis.pipeline(transaction=True) as writes:
                writes.hset(effect_name(effect_key), "tombstone", "1")
                writes.hdel(effect_name(effect_key), "github_id", "url", "digest")
                await writes.execute()

    async def by_github_id(self, repository_id: int, github_id: int) -> EffectRecord | None:
        """The effect whose comment or issue has this id."""
        with answered():
            found = await self._redis.hget(f"github:{repository_id}", str(github_id))
        return None if found is None else (await self.get([text(found)])).get(text(found))

    async def adopt(self, record: EffectRecord) -> None:
        """Write a record that was rebuilt from GitHub; what the ledger already knows stands.

        ``looked_up`` holds for this epoch alone.
        """
        with answered():
            epoch = await self._redis.hget("epoch", "id") if record.looked_up else None
        fields = [part for pair in _fields(record).items() for part in pair]
        await self._adopt(
            [effect_name(record.effect_key)], [record.effect_key, text(epoch), *fields]
        )

    async def incident(self, kind: str, detail: str) -> None:
        """Count an incident, and keep its line."""
        await self._counters.incident(kind, detail)


def _placed(raw: bytes) -> RunEffect:
    return parsed(RunEffect, raw.split(b" ", 1)[1])


def _samples(times: str) -> tuple[datetime, ...]:
    return tuple(moment(time) for time in times.split())


def _record(key: str, fields: Mapping[str, str], epoch: str) -> EffectRecord:
    number = {name: int(fields.get(name) or 0) for name in _NUMBERS}
    return EffectRecord(
        effect_key=key,
        **number,
        kind=EffectKind(fields.get("kind", EffectKind.COMMENT)),
        github_id=int(fields["github_id"]) if "github_id" in fields else None,
        url=fields.get("url", ""),
        digest=fields.get("digest", ""),
        holder=fields.get("holder", ""),
        holding=Holding(fields["holding"]) if "holding" in fields else None,
        claimed_at=moment_or_none(fields.get("claimed_at", "")),
        samples=_samples(fields.get("samples", "")),
        writer=fields.get("writer", ""),
        tombstone=fields.get("tombstone") == "1",
        own_labels=_labels(fields, "own:"),
        removed_labels=_labels(fields, "removed:"),
        looked_up=bool(epoch) and fields.get("looked_up") == epoch,
    )


_NUMBERS = ("repository_id", "issue_id", "issue", "claim_fence", "sends", "writer_fence")


def _labels(fields: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    return tuple(sorted(name.removeprefix(prefix) for name in fields if name.startswith(prefix)))


def _fields(record: EffectRecord) -> dict[str, str]:
    """A rebuilt record as the hash holds it. Nobody holds it, and no claim of it is open."""
    fields = {name: str(getattr(record, name)) for name in _NUMBERS if getattr(record, name)}
    fields["kind"] = record.kind
    if record.github_id is not None:
        fields |= {"github_id": str(record.github_id), "url": record.url, "digest": record.digest}
    if record.writer:
        fields["writer"] = record.writer
    if record.samples:
        fields["samples"] = " ".join(str(stamp(at)) for at in record.samples)
    if record.tombstone:
        fields["tombstone"] = "1"
    fields |= {f"own:{label}": "1" for label in record.own_labels}
    fields |= {f"removed:{label}": "1" for label in record.removed_labels}
    return fields
