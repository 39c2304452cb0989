"""The contract of a review and of a watch: what it shows, and what each may write."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.triage.reviews import (
    COLD,
    FILES,
    KEY,
    RESUMED,
    SESSION,
    follow_up,
    known,
    prior,
    review_inputs,
    taken,
    told,
)
from tests.triage.samples import NOON, run
from tests.triage.watches import WATCH_KEY, document, watch_inputs, watched
from triage.contract import RunInputs, RunRecord, contract, figures, summarised, write_scope
from triage.findings import Opening, Start
from triage.identifiers import JobKey, Mode
from triage.review import make_review
from triage.snapshot import source_set
from triage.tree import tree_of


def shown(record: RunRecord) -> dict[str, Any]:
    """The contract of a run that nobody holds, as JSON has it."""
    return json.loads(  # type: ignore[no-any-return]
        json.dumps(contract(record, lease_owner="", lease_until=None, fence=0))
    )


@pytest.mark.parametrize(
    ("inputs", "scope", "remote_write"),
    [
        (review_inputs(mode=Mode.OBSERVE), [], "denied"),
        (
            review_inputs(mode=Mode.COMMENT),
            ["issues: the one of the review", "own duplicates: close"],
            "allowed",
        ),
        (watch_inputs(), [], "denied"),
        (watch_inputs(mode=Mode.LABEL), [], "denied"),
        (watch_inputs(mode=Mode.COMMENT), [], "denied"),
    ],
)
def test_what_a_run_may_write(inputs: RunInputs, scope: list[str], remote_write: str) -> None:
    """A review its one issue, a watch nothing at all, whatever mode it was started in."""
    assert write_scope(inputs) == scope
    found = shown(run(inputs=inputs))
    assert found["write_scope"] == scope
    assert found["side_effect_policy"]["remote_write"] == remote_write


def test_the_contract_of_a_review() -> None:
    """Its tree, how it started, and what it shows of the review before it; no issues."""
    snapshot = taken(prior(known()), RESUMED)
    review = make_review(follow_up(told("p")), snapshot, FILES, session_id=SESSION)
    record = run(
        inputs=review_inputs(mode=Mode.COMMENT),
        snapshot_summary=summarised(snapshot),
        review=figures(review),
    )
    found = shown(record)
    assert (found["job_key"], found["dedupe_key"]) == ("nightly-repo-review", KEY)
    assert found["input_snapshot"] == {
        "source_set": "files:base-commit",
        "query_cutoff": "2026-09-16T12:00:00+00:00",
        "base_commit": "6dcb09b5b57875f334f61aebed695e2e4193db5e",
        "observed_at": "2026-09-16T12:00:04+00:00",
        "review": {
            "start": "resumed",
            "files": 3,
            "files_digest": tree_of(FILES).digest,
            "previous_review_id": "review-1",
            "previous_findings": 1,
        },
    }
    assert found["review"] == {
        "verdict": "concerns",
        "link": {
            "same_session": "true",
            "prior_review_id_echoed": "true",
            "recalled_findings": "1/1",
            "current_findings": "1",
            "broken": [],
        },
    }
    assert shown(RunRecord.model_validate_json(record.model_dump_json())) == found


def test_the_contract_of_a_first_review() -> None:
    """There is no link, and the reason for the cold start is named."""
    opening = Opening.model_validate({"start": Start.COLD, "why": "first-review"})
    snapshot = taken(None, opening)
    review = make_review(follow_up(told("p")), snapshot, FILES, session_id=SESSION)
    record = run(
        inputs=review_inputs(), snapshot_summary=summarised(snapshot), review=figures(review)
    )
    found = shown(record)
    assert found["input_snapshot"]["review"]["why"] == "first-review"
    assert found["input_snapshot"]["review"]["previous_review_id"] == ""
    assert found["review"]["link"] is None


def test_the_contract_of_a_watch() -> None:
    """Each resource with its real address, when it was read, and its digest; no texts."""
    read = document("x", kind="page", observed_at=NOON + timedelta(seconds=1))
    record = run(inputs=watch_inputs(), snapshot_summary=summarised(watched(read)))
    found = shown(record)
    assert found["dedupe_key"] == WATCH_KEY
    assert found["input_snapshot"]["resources"] == [
        {
            "name": "valkey",
            "url": "https://cdn.example.com/valkey",
            "observed_at": "2026-09-16T12:00:01+00:00",
            "digest": read.digest,
        }
    ]
    assert "issues" not in found["input_snapshot"]
    assert "review" not in found


def test_each_job_names_what_it_looks_at() -> None:
    """A command its issue."""
    assert [source_set(job) for job in (JobKey.DAILY, JobKey.REVIEW, JobKey.WATCH)] == [
        "issues:open:unlabeled",
        "files:base-commit",
        "resources:allow-list",
    ]
    assert source_set(JobKey.RETRIAGE, 7) == "issue:7"


def test_a_snapshot_of_a_review_goes_through_json() -> None:
    """With all that it holds of the last one."""
    for snapshot in (taken(prior(known()), RESUMED), taken(None, COLD)):
        assert type(snapshot).model_validate_json(snapshot.model_dump_json()) == snapshot
