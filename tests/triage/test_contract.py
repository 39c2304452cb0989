"""The run contract: what it shows, in the words and the order of the design."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.triage.samples import (
    DEDUPE_KEY,
    LABELS,
    NOON,
    effect,
    inputs,
    issue,
    policy,
    run,
    snapshot,
)
from triage.contract import (
    Attempt,
    Evidence,
    Resolution,
    RunEffect,
    RunRecord,
    Status,
    Verdict,
    contract,
    summarised,
    write_scope,
)
from triage.identifiers import EffectKind, Mode
from triage.plan import Cost

TAIPEI = policy(
    labels={"bug": "", "enhancement": "", "question": ""}, schedule={"timezone": "Asia/Taipei"}
)
CUTOFF = datetime(2026, 9, 16, 1, tzinfo=UTC)


def shown(record: RunRecord, **lease: Any) -> dict[str, Any]:
    """The contract; nobody holds the lease where nothing else is said."""
    holder = {"lease_owner": "", "lease_until": None, "fence": 0}
    return contract(record, **{**holder, **lease})


def test_the_contract_of_the_design() -> None:
    """A completed run, as ``retriage show`` prints it."""
    record = run(
        inputs=inputs(policy=TAIPEI),
        status=Status.COMPLETED,
        result_artifact="https://github.example/acme/api/issues/412",
        snapshot_summary=summarised(
            snapshot(
                *(issue(n) for n in range(1, 13)),
                query_cutoff=CUTOFF,
                observed_at=CUTOFF + timedelta(seconds=4),
            )
        ),
        attempts=[
            Attempt(
                owner="worker-7f3c",
                fence=41,
                began=CUTOFF,
                until=CUTOFF + timedelta(minutes=1),
                ended="completed",
            )
        ],
        effects=[effect(EffectKind.LABELS, evidence=Evidence.CONFIRMED, when=CUTOFF)],
        cost=Cost(estimated_usd=0.031, turns=7, input_tokens=18234, output_tokens=2110, sessions=1),
    )
    found = shown(
        record, lease_owner="worker-7f3c", lease_until=CUTOFF + timedelta(minutes=20), fence=41
    )
    assert found == {
        "job_key": "daily-issue-triage",
        "window_key": "2026-09-16",
        "dedupe_key": DEDUPE_KEY,
        "repository": "acme/api",
        "input_snapshot": {
            "source_set": "issues:open:unlabeled",
            "query_cutoff": "2026-09-16T09:00:00+08:00",
            "base_commit": "6dcb09b5b57875f334f61aebed695e2e4193db5e",
            "observed_at": "2026-09-16T09:00:04+08:00",
            "issues": 12,
            "passed_over": {},
            "left_over": 0,
        },
        "lease_owner": "worker-7f3c",
        "lease_until": "2026-09-16T09:20:00+08:00",
        "fence": 41,
        "write_scope": [
            "issues/*/comments: the one of triage",
            "issues/*/labels: bug, enhancement, question",
            "issues: the summary of 2026-09-16",
            "reactions",
            "own duplicates: delete",
        ],
        "side_effect_policy": {
            "remote_write": "allowed",
            "overwrite_same_artifact": "allowed",
        },
        "result_artifact": "https://github.example/acme/api/issues/412",
        "status": "completed",
        "reason": "",
        "retry_at": None,
        "proof_until": None,
        "attempts": [
            {
                "owner": "worker-7f3c",
                "from": "2026-09-16T09:00:00+08:00",
                "to": "2026-09-16T09:01:00+08:00",
                "ended": "completed",
            }
        ],
        "effects": [
            {
                "kind": "labels",
                "target": "issues/1/labels: +bug",
                "github_id": None,
                "evidence": "confirmed",
                "when": "2026-09-16T09:00:00+08:00",
            }
        ],
        "cost": {
            "estimated_usd": 0.031,
            "turns": 7,
            "input_tokens": 18234,
            "output_tokens": 2110,
            "sessions": 1,
        },
    }


def test_a_stored_run_shows_the_same_contract() -> None:
    """What goes through the ledger's JSON keeps its times, in the repository's zone."""
    record = run(
        inputs=inputs(policy=TAIPEI),
        snapshot_summary=summarised(snapshot(query_cutoff=CUTOFF)),
        retry_at=CUTOFF,
        effects=[effect(when=CUTOFF, evidence=Evidence.SKIPPED, reason="locked")],
    )
    again = RunRecord.model_validate_json(record.model_dump_json())
    assert again == record
    assert shown(again) == shown(record)
    assert shown(again)["input_snapshot"]["query_cutoff"] == "2026-09-16T09:00:00+08:00"


def test_the_contract_is_plain_data() -> None:
    """It is printed as YAML and as JSON: text, numbers, lists and maps, nothing else."""
    found = shown(run(effects=[effect()], snapshot_summary=summarised(snapshot())))
    assert json.loads(json.dumps(found)) == found
    assert {type(value) for value in found.values()} <= {str, int, list, dict, type(None)}


def test_a_run_that_has_not_begun_has_no_snapshot() -> None:
    """Everything else is there."""
    found = shown(run())
    assert found["input_snapshot"] is None
    assert (found["status"], found["effects"], found["attempts"]) == ("queued", [], [])


def test_a_reason_stands_with_its_evidence() -> None:
    """``skipped`` alone would say too little."""
    skipped = effect(evidence=Evidence.SKIPPED, reason="human-removed")
    assert shown(run(effects=[skipped]))["effects"][0]["evidence"] == "skipped (human-removed)"


def test_who_decided_about_a_run_is_told() -> None:
    """With the reason, and when; nothing stands there where nobody had to."""
    decided = Resolution(verdict=Verdict.RETRY, by="ada", why="it is not there", at=CUTOFF)
    record = run(inputs=inputs(policy=TAIPEI), resolutions=[decided])
    assert shown(record)["resolutions"] == [
        {
            "verdict": "retry",
            "by": "ada",
            "why": "it is not there",
            "at": "2026-09-16T09:00:00+08:00",
        }
    ]
    assert "resolutions" not in shown(run())


# --- The write scope ----------------------------------------------------------------------------

ALL_LABELS = ", ".join(LABELS)


@pytest.mark.parametrize(
    ("changes", "scope"),
    [
        ({"mode": Mode.OBSERVE}, []),
        (
            {"mode": Mode.LABEL},
            [
                f"issues/*/labels: {ALL_LABELS}",
                "issues: the summary of 2026-09-16",
                "reactions",
                "own duplicates: delete",
            ],
        ),
        (
            {"mode": Mode.COMMENT, "policy": policy(summary="rolling")},
            [
                "issues/*/comments: the one of triage",
                f"issues/*/labels: {ALL_LABELS}",
                "issues: the rolling summary",
                "reactions",
                "own duplicates: delete",
            ],
        ),
        (
            {"mode": Mode.LABEL, "policy": policy(summary="off")},
            [f"issues/*/labels: {ALL_LABELS}", "reactions", "own duplicates: delete"],
        ),
        (
            {"mode": Mode.COMMENT, "target_issue": 7},
            [
                "issues/7/comments: the one of triage",
                f"issues/7/labels: {ALL_LABELS}",
                "reactions",
                "own duplicates: delete",
            ],
        ),
    ],
    ids=["observe", "label", "rolling", "no summary", "a command"],
)
def test_a_run_names_what_it_may_write(changes: dict[str, Any], scope: list[str]) -> None:
    """Nothing in observe mode; a command only on its issue, and without a summary."""
    assert write_scope(inputs(**changes)) == scope


def test_observe_writes_nothing_remote() -> None:
    """The contract says so."""
    found = shown(run(inputs=inputs(mode=Mode.OBSERVE)))
    assert found["side_effect_policy"]["remote_write"] == "denied"


# --- Effects and statuses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planned", "target"),
    [
        (effect(EffectKind.COMMENT), "issues/1/comments"),
        (effect(EffectKind.LABELS, labels=("bug", "docs")), "issues/1/labels: +bug, +docs"),
        (effect(EffectKind.UNLABEL, labels=("bug", "docs")), "issues/1/labels: -bug, -docs"),
        (effect(EffectKind.SUMMARY), "issues"),
        (effect(EffectKind.SUMMARY).model_copy(update={"issue": 412}), "issues/412"),
        (effect(EffectKind.REMOVAL, github_id=55), "issues/1: own duplicate 55"),
        (effect(EffectKind.REPORT, url="reports/x.md"), "reports/x.md"),
    ],
)
def test_a_target_in_words(planned: RunEffect, target: str) -> None:
    """Of each kind of effect."""
    assert planned.target == target


def test_an_unsettled_effect_is_in_doubt_or_acknowledged() -> None:
    """In doubt: a request may still land. Acknowledged: only a read has not shown it yet."""
    doubt = effect(evidence=Evidence.UNSETTLED, open=True)
    assert (doubt.in_doubt, doubt.acknowledged) == (True, False)
    told = effect(evidence=Evidence.UNSETTLED)
    assert (told.in_doubt, told.acknowledged) == (False, True)
    for evidence in set(Evidence) - {Evidence.UNSETTLED}:
        settled = effect(evidence=evidence, open=True)
        assert (settled.in_doubt, settled.acknowledged) == (False, False)


def test_two_statuses_are_final() -> None:
    """Their evidence is frozen: GitHub has confirmed it."""
    assert [status for status in Status if status.final] == [Status.COMPLETED, Status.NO_CHANGE]


def test_a_run_knows_its_key() -> None:
    """From its frozen inputs."""
    assert str(run().key) == DEDUPE_KEY
    assert run().created_at == NOON
