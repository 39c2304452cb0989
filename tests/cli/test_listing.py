"""``retriage runs`` and ``retriage show``: what the ledger holds, for people and for programs."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from tests.cli.terminal import Terminal, terminal
from tests.ledger.samples import NOON, REPOSITORY, effect, run
from triage.contract import Attempt, Evidence, Status, summarised
from triage.identifiers import EffectKind
from triage.plan import Cost
from triage.snapshot import Snapshot

HOSTILE = "\x1b[2Jit was \u202eedited"
DONE, HELD, FAILED = (
    f"daily-issue-triage:R{REPOSITORY}:2026-09-{day}:p0000000a" for day in (18, 16, 17)
)
CONTRACT = [
    "job_key",
    "window_key",
    "dedupe_key",
    "repository",
    "input_snapshot",
    "lease_owner",
    "lease_until",
    "fence",
    "write_scope",
    "side_effect_policy",
    "result_artifact",
    "status",
    "attempts",
    "effects",
    "cost",
]


async def _end(ledger: Ledger, key: str, status: Status, **fields: Any) -> None:
    """Begin a run and end it in a status."""
    lease = await ledger.leases.acquire(key, "worker-1", key)
    assert lease is not None
    attempt = Attempt(owner="worker-1", fence=lease.fence, began=NOON)
    begun = run(key, attempts=(attempt,))
    await ledger.runs.save(lease, begun)
    effects = fields.pop("effects")
    await ledger.runs.save_effects(lease, effects)
    ended = attempt.model_copy(update={"until": NOON + timedelta(minutes=4), "ended": status})
    settled = begun.model_copy(update={"status": status, "attempts": (ended,), **fields})
    await ledger.runs.settle(lease, settled, {})


async def _fill(url: str) -> None:
    """One run that needs a person, one that failed, one that is done: oldest first."""
    async with connect(url) as client:
        ledger = open_ledger(client, LedgerTiming())
        await ledger.epochs.ensure(first=True)
        conflict = effect(
            issue=3,
            evidence=Evidence.CONFLICT,
            reason=HOSTILE,
            github_id=55,
            url="https://github.com/acme/API/issues/3#issuecomment-55",
            when=NOON + timedelta(minutes=2),
        )
        await _end(ledger, HELD, Status.NEEDS_REVIEW, reason="a conflict", effects=[conflict])
        unsent = effect(EffectKind.LABELS, issue=2)
        await _end(ledger, FAILED, Status.FAILED_BEFORE_WRITE, effects=[unsent])
        written = effect(evidence=Evidence.CONFIRMED, github_id=50, when=NOON)
        snapshot = Snapshot(
            dedupe_key=DONE,
            source_set="issues:open:unlabeled",
            query_cutoff=NOON,
            base_commit="6dcb09b5b57875f334f61aebed695e2e4193db5e",
            observed_at=NOON,
            fence=3,
            issues=(),
        )
        await _end(
            ledger,
            DONE,
            Status.COMPLETED,
            effects=[written],
            result_artifact="https://github.com/acme/API/issues/412",
            snapshot_summary=summarised(snapshot),
            cost=Cost(estimated_usd=0.031, turns=7, input_tokens=18234, output_tokens=2110),
        )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A terminal whose data folder holds these runs."""
    typed = terminal(tmp_path_factory.mktemp("filled"))
    with EmbeddedServer(typed.data) as server:
        asyncio.run(_fill(server.url))
    return typed


def test_what_needs_a_person_stands_first(filled: Terminal) -> None:
    """Though it is the oldest; a status is a word and a shape, and colours are for terminals."""
    ended = filled.type("runs")
    assert ended.code == 0
    rows = [line for line in ended.out.split("\n\n")[0].splitlines()[1:] if line]
    assert [row.split()[:2] for row in rows] == [
        ["?", "needs-review"],
        ["✗", "failed-before-write"],
        ["✓", "completed"],
    ]
    assert all(key in row for key, row in zip((HELD, FAILED, DONE), rows, strict=True))
    assert "\x1b" not in ended.out


def test_what_a_person_has_to_know(filled: Terminal) -> None:
    """What is undecided, what was tried, when it was read, where, and what to do; cleaned."""
    ended = filled.type("runs", "--status", "needs-review")
    told = ended.out.partition("\n\n")[2]
    assert "undecided  issues/3/comments, conflict: [2Jit was edited" in told
    assert "tried      nothing was sent" in told
    assert "read       2026-09-16 12:02 UTC" in told
    assert "see        https://github.com/acme/API/issues/3#issuecomment-55" in told
    assert f"retriage show {HELD}" in told


def test_forty_columns_cut_no_key(filled: Terminal) -> None:
    """A key that is cut cannot be copied."""
    ended = filled.type("runs", "--status", "completed", COLUMNS="40")
    assert ended.out == f"✓ completed  acme/API  2026-09-18  comment\n  {DONE}\n"


def test_filters_and_json(filled: Terminal) -> None:
    """For programs: everything, in the same order."""
    runs = filled.type("runs", "--json").json["runs"]
    assert [item["dedupe_key"] for item in runs] == [HELD, FAILED, DONE]
    assert runs[0]["undecided"][0]["target"] == "issues/3/comments"
    assert runs[2]["effects"] == {"confirmed": 1}
    limited = filled.type("runs", "--json", "--limit", "1", "--repository", "acme/api")
    assert [item["dedupe_key"] for item in limited.json["runs"]] == [HELD]


def test_an_empty_view_says_why(filled: Terminal, tmp_path: Path) -> None:
    """A filter that fits nothing, or a ledger that is not there, and looking makes none."""
    assert "No run with status waiting is" in filled.type("runs", "--status", "waiting").err
    assert "No run of acme/other is" in filled.type("runs", "--repository", "acme/other").err
    empty = terminal(tmp_path)
    ended = empty.type("runs")
    assert ended.code == 0
    assert "REDIS_URL is not set" in ended.err
    assert "retriage run OWNER/REPO" in ended.err
    assert empty.type("runs", "--json").json == {"runs": []}
    assert empty.type("show", DONE).code == 2
    assert not empty.data.exists()


def test_the_contract_has_every_field_filled(filled: Terminal) -> None:
    """In the order of the design; the same as YAML and as JSON."""
    ended = filled.type("show", DONE)
    assert ended.code == 0
    assert ended.out.startswith("# Written and read back; all match.\n")
    shown = yaml.safe_load(ended.out)
    assert [key for key in shown if key in CONTRACT] == CONTRACT
    assert [key for key in CONTRACT if shown[key] in (None, "", [], {})] == []
    assert shown["input_snapshot"]["issues"] == 0
    assert shown["fence"] == 3
    assert shown["attempts"][0]["ended"] == "completed"
    assert shown["cost"]["estimated_usd"] == 0.031
    assert filled.type("show", DONE, "--json").json == shown


def test_a_key_that_is_not_there_gets_a_suggestion(filled: Terminal) -> None:
    """A letter too few, and what is no key at all."""
    ended = filled.type("show", DONE[:-1])
    assert ended.code == 2
    assert f"did you mean {DONE}" in ended.err
    ended = filled.type("show", "2026-09-18")
    assert ended.code == 2
    assert "is no run key" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_what_strangers_wrote_is_cleaned_in_yaml(filled: Terminal) -> None:
    """And kept, escaped, in JSON."""
    assert not {"\x1b", "\u202e"} & set(filled.type("show", HELD).out)
    effects = filled.type("show", HELD, "--json").json["effects"]
    assert HOSTILE in effects[0]["evidence"]
