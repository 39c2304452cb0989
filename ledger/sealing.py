"""A run that is over, in one packed value: nothing of it changes any more, and it is kept for long.

Its record and its effects pack together, a seventh as large. An effect's key is left out where it
follows from the run and the effect, as it does for all but a rolling summary and a removal.
"""

import hashlib
from collections.abc import Mapping

from ledger.codec import packed_for_good, raw, unpacked
from triage.contract import RunEffect, RunRecord
from triage.identifiers import FAMILY, DedupeKey, effect_key


def sealed(run: RunRecord) -> bytes:
    """The run with its effects, packed."""
    key = run.key
    effects = tuple(
        effect.model_copy(update={"effect_key": ""})
        if effect.effect_key == _usual_key(key, effect)
        else effect
        for effect in run.effects
    )
    return packed_for_good(run.model_copy(update={"effects": effects}))


def is_sealed(record: str) -> bool:
    """Whether a stored record is packed; else it is JSON."""
    return not record.startswith("{")


def unsealed(record: str) -> RunRecord:
    """Read ``sealed`` back. Raises LedgerCorruptError."""
    run = unpacked(RunRecord, raw(record))
    key = run.key
    effects = tuple(
        effect
        if effect.effect_key
        else effect.model_copy(update={"effect_key": _usual_key(key, effect)})
        for effect in run.effects
    )
    return run.model_copy(update={"effects": effects})


def seal_of(fields: Mapping[str, str]) -> str:
    """A digest of the effects in a run's hash. The script that puts the packed run there computes
    it too, and does so only where nothing was written meanwhile."""
    names = sorted(name for name in fields if name.startswith("e:"))
    whole = raw("".join(name + fields[name] for name in names))
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()


def _usual_key(run: DedupeKey, effect: RunEffect) -> str:
    window = None if effect.issue_id else run.window
    return effect_key(run.repository_id, effect.issue_id, FAMILY[run.job], effect.kind, window)
