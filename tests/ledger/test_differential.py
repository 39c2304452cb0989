"""The two ledgers, step by step: whatever is done to both in the same order gives the same."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.connection import connect
from ledger.records import Due, DueKind, EffectRecord
from ledger.server import EmbeddedServer
from tests.ledger.nights import OTHER_SESSION, SESSION
from tests.ledger.places import Memory, Valkey
from tests.ledger.samples import REPOSITORY
from tests.ledger.sides import COPIES, DAWN, EFFECTS, IDS, KEYS, RUNS, Side
from triage.contract import Evidence, Status
from triage.identifiers import EffectKind

Step = tuple[Any, ...]
Fields = dict[str, Any]


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    """A step with these arguments."""
    return st.tuples(st.just(name), *arguments)


runs = st.sampled_from(RUNS)
back = st.sampled_from([0, 0, 0, 0, 1, 2])
"""How many leases ago: a worker that does not know yet that it lost its own."""
whole = st.sampled_from([0, 0, 0, 1, 2])
"""How many effects a worker knows of that ends a run."""
flag = st.booleans()
number = st.integers(0, 9)
minutes = st.integers(0, 20)
keys = st.sampled_from(KEYS)
effects = st.sampled_from(EFFECTS)
labels = st.sampled_from(["bug", "question"])
some_labels = st.sets(labels).map(lambda chosen: tuple(sorted(chosen)))
urls, digests = st.sampled_from(["", "a", "b" * 65]), st.sampled_from(["", "d", "e"])
ids = st.sampled_from(IDS)
dues = st.sampled_from(
    [*(Due(DueKind.CONTINUE, key) for key in RUNS), *(Due(DueKind.SAMPLE, key) for key in KEYS)]
)
statuses = st.sampled_from([status for status in Status for _ in range(1 if status.final else 2)])

intents: st.SearchStrategy[Fields] = st.fixed_dictionaries(
    {}, optional={"github_id": ids, "labels": some_labels, "digest": digests}
)
outcomes: st.SearchStrategy[Fields] = st.fixed_dictionaries(
    {"evidence": st.sampled_from(Evidence), "open": flag},
    optional={
        "github_id": ids,
        "url": urls,
        "digest": digests,
        "reason": st.sampled_from(["resolved", "locked"]),
        "labels": some_labels,
        "sends": st.integers(0, 3),
        "sent_at": st.sampled_from([None, DAWN]),
        "when": st.just(DAWN),
        "issue": st.integers(0, 2),
    },
)
landed: st.SearchStrategy[Fields] = st.fixed_dictionaries(
    {
        "evidence": st.sampled_from([Evidence.UNSETTLED, Evidence.CONFIRMED]),
        "open": st.just(False),
        "github_id": ids,
    }
)
adopted: st.SearchStrategy[EffectRecord] = st.builds(
    EffectRecord,
    effect_key=keys,
    repository_id=st.sampled_from([0, REPOSITORY]),
    issue_id=st.sampled_from([0, 1001]),
    issue=st.integers(0, 1),
    kind=st.sampled_from(EffectKind),
    github_id=st.none() | ids,
    url=urls,
    digest=digests,
    writer=st.sampled_from(["", RUNS[0]]),
    writer_fence=st.integers(0, 3),
    sends=st.integers(0, 1),
    samples=st.sampled_from([(), (DAWN,)]),
    tombstone=flag,
    own_labels=some_labels,
    removed_labels=some_labels,
    looked_up=flag,
)

of_claims = [
    step("claim", runs, back, effects, intents, flag, st.sampled_from([0, 0, 0, 2, -2])),
    step("claim", runs, st.just(0), effects, st.just({}), st.just(True), st.just(0)),
    step("claim", runs, st.just(0), effects, st.just({}), st.just(False), st.just(0)),
    step("claim_again", number, flag, flag),
    step("acknowledge", number, outcomes),
    step("acknowledge", number, landed),
    step("withdraw", number),
    step("prove_absent", keys, st.lists(minutes, min_size=1, max_size=6)),
    step("prove_absent", keys, st.just([0, 4, 8, 12, 15])),
    step("save_effects", runs, back, st.lists(st.tuples(effects, outcomes), max_size=3)),
]
of_runs = [
    step("acquire", runs, st.sampled_from(["one", "two"]), flag),
    step("renew", runs, back),
    step("save", runs, back, statuses, number, whole),
    step("freeze", runs, back, st.integers(1, 3)),
    step("take_over", runs, st.sampled_from([30, 61])),
    step("settle", runs, back, statuses, number, whole, st.dictionaries(dues, minutes, max_size=2)),
]
of_people = [
    step("note_hit", keys, ids, urls, digests, st.integers(0, 2)),
    step("note_removed_label", keys, labels),
    step("note_tombstone", keys),
    step("adopt", adopted),
]
of_time = [
    step("add_due", dues, minutes),
    step("remove_due", dues, st.none() | minutes),
    step("take_due", minutes, st.integers(0, 3)),
    step("incident", st.sampled_from(["late", "duplicate"])),
    step(
        "save_repository",
        st.fixed_dictionaries({}, optional={"active": flag, "last_window": urls}),
        flag,
    ),
]
of_loss = [
    step("release", runs, back),
    step("lapse", runs, st.sampled_from([0, 30, 61])),
    step("ensure", flag),
    step("lose_epoch"),
    step("another_server"),
    step("recover"),
    step("recover"),
]
copies = st.sampled_from([*COPIES, *COPIES[:4]])
some_words = st.lists(st.sampled_from(["a", "bb", "ccc"]), min_size=1, max_size=3)
of_reviews = [
    step("say", copies, some_words, st.just(0)),
    step("say", copies, some_words, st.sampled_from([0, 0, -1, -2, 1])),
    step(
        "promote",
        st.sampled_from([None, *COPIES, *COPIES[:4]]),
        st.sampled_from([SESSION, SESSION, OTHER_SESSION]),
        st.sampled_from([0, 0, 0, 0, 1, -1]),
        flag,
        st.sampled_from([0, 0, 0, 2, -3]),
    ),
    step(
        "give_up",
        runs,
        back,
        st.sampled_from([None, None, *COPIES[2:4]]),
        st.sampled_from(["broken", "lost"]),
    ),
    step("discard", copies),
]
_WEIGHED = [*of_claims * 6, *of_runs * 3, *of_people, *of_time, *of_loss]
STEPS = st.integers(0, len(_WEIGHED) - 1).flatmap(lambda chosen: _WEIGHED[chosen])
_NIGHTLY = [*of_reviews[:3] * 4, *of_reviews[3:], step("take_over", runs, st.just(61))]
NIGHTS = st.integers(0, len(_NIGHTLY) - 1).flatmap(lambda chosen: _NIGHTLY[chosen])


@pytest.mark.timeout(300)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps=st.lists(STEPS, min_size=30, max_size=60))
def test_both_ledgers_give_the_same(valkey: EmbeddedServer, steps: list[Step]) -> None:
    """Every answer, every refusal, and what can be read after each step."""
    asyncio.run(_compare(valkey.url, steps, Side.seen))


@pytest.mark.timeout(300)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(steps=st.lists(NIGHTS, min_size=20, max_size=40))
def test_both_ledgers_remember_the_same(valkey: EmbeddedServer, steps: list[Step]) -> None:
    """Of reviews and their sessions, after each step."""
    asyncio.run(_compare(valkey.url, steps, Side.remembered))


async def _compare(url: str, steps: list[Step], look: Callable[[Side], Awaitable[object]]) -> None:
    async with connect(url) as client:
        await client.flushall()
        sides = [Side(Valkey(client)), Side(Memory())]
        for side in sides:
            await side.begin()
        for taken in steps:
            real, memory = [await side.take(taken) for side in sides]
            assert memory == real, taken
            real, memory = [await look(side) for side in sides]
            assert memory == real, taken
        real, memory = [await side.all_seen() for side in sides]
        assert memory == real
