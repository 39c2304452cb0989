"""What reading GitHub back proves of one effect.

GitHub's lists flap: one empty list proves nothing, any single hit wins. A create is proved absent
by five successful, uncached reads in two views, spread over the absence window and counted from the
first read, all empty.

Invariant: absence is never concluded from fewer than SAMPLES reads, nor from a single view.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from triage.contract import Evidence, RunEffect, Skip
from triage.marker import MarkerKeys, Reading, Signature, read

SAMPLES = 5
"""Empty reads that prove absence."""

UNSETTLED_LIMIT = timedelta(hours=24)
"""How long an effect may stay unsettled before a person is asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """A live comment or issue that bears a marker: what was seen of it."""

    github_id: int
    number: int
    author_id: int
    reading: Reading
    url: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """The effect is on GitHub. ``others`` are later ones that bear the same key."""

    found: Found
    others: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Forged:
    """An own comment or issue in the effect's place whose signature does not verify."""

    found: Found


@dataclass(frozen=True, slots=True)
class Nothing:
    """This read did not show the effect: that alone proves nothing."""


def find(effect_key: str, seen: Iterable[Found], bot_ids: frozenset[int]) -> Hit | Forged | Nothing:
    """The effect among what was seen: the lowest id wins; only the bot's own count."""
    own = sorted(
        (item for item in seen if item.author_id in bot_ids), key=lambda item: item.github_id
    )
    bearing = [
        item
        for item in own
        if item.reading.marker is not None and item.reading.marker.effect_key == effect_key
    ]
    valid = [item for item in bearing if item.reading.signature is Signature.VALID]
    if valid:
        return Hit(valid[0], tuple(valid[1:]))
    return Forged(bearing[0]) if bearing else Nothing()


def found(
    github_id: int, number: int, author_id: int, body: str | None, url: str, keys: MarkerKeys
) -> Found:
    """What a comment or issue proves."""
    return Found(github_id, number, author_id, read(body, keys), url)


def next_sample(samples: Sequence[datetime], now: datetime, window: timedelta) -> datetime | None:
    """When the next read counts; None once absence is proved.

    Reads fall at the first and at the quarters of the window; where some came late, the next ones
    keep half a quarter between them, so that no burst passes for a spread.
    """
    if proved_absent(samples, window):
        return None
    if not samples:
        return now
    taken = min(len(_spread(samples, window)), SAMPLES - 1)
    planned = samples[0] + window * taken / (SAMPLES - 1)
    return max(planned, samples[-1] + window / (SAMPLES - 1) / 2)


def counts_as_sample(samples: Sequence[datetime], now: datetime, window: timedelta) -> bool:
    """Whether an empty read at ``now`` is another sample."""
    due = next_sample(samples, now, window)
    return due is not None and now >= due


def proved_absent(samples: Sequence[datetime], window: timedelta) -> bool:
    """Five empty reads, the last at least one absence window after the first."""
    spread = _spread(samples, window)
    return len(spread) >= SAMPLES and spread[-1] - spread[0] >= window


def _spread(samples: Sequence[datetime], window: timedelta) -> list[datetime]:
    """The samples without those that only repeat another: readers that looked at the same time."""
    kept: list[datetime] = []
    for at in samples:
        if not kept or at - kept[-1] >= window / (SAMPLES - 1) / 4:
            kept.append(at)
    return kept


def proof_until(samples: Sequence[datetime], now: datetime, window: timedelta) -> datetime:
    """The time of the read that completes the proof, if each is taken when it falls due."""
    taken = list(samples)
    while (due := next_sample(taken, now, window)) is not None:
        taken.append(max(due, now))
    return taken[-1]


def is_overdue(effect: RunEffect, now: datetime) -> bool:
    """Unsettled for longer than a program should decide about."""
    return (
        effect.evidence is Evidence.UNSETTLED
        and effect.sent_at is not None
        and now - effect.sent_at >= UNSETTLED_LIMIT
    )


def adopted(effect: RunEffect, hit: Hit, now: datetime) -> RunEffect:
    """The effect as a hit settles it.

    Confirmed when the marker on GitHub carries the intended digest. A body that differs from its
    own marker's digest was edited by a person and is left. Another digest means that the edit has
    not landed, another key that it was signed for another place: absent, to be done.
    """
    reading = hit.found.reading
    known = {"github_id": hit.found.github_id, "url": hit.found.url, "when": now, "open": False}
    if reading.edited_by_person:
        skipped = {"evidence": Evidence.SKIPPED, "reason": Skip.HUMAN_EDITED}
        return effect.model_copy(update={**known, **skipped})
    meant = (effect.effect_key, effect.digest)
    marker = reading.marker
    same = marker is not None and (marker.effect_key, marker.digest) == meant
    evidence = Evidence.CONFIRMED if same else Evidence.ABSENT
    return effect.model_copy(update={**known, "evidence": evidence, "reason": ""})
