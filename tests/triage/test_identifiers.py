"""The keys of runs and effects: what goes into them, and that nobody changes them by accident."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import DEDUPE_KEY, REPOSITORY, policy
from triage.identifiers import (
    FAMILY,
    DedupeKey,
    EffectKind,
    Family,
    JobKey,
    MalformedKeyError,
    Mode,
    digest_of,
    effect_key,
    input_version,
)

WORDS = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=40)
KEYS = st.builds(
    DedupeKey,
    job=st.sampled_from(JobKey),
    repository_id=st.integers(1, 2**63 - 1),
    window=WORDS,
    input_version=WORDS,
    forced=st.none() | WORDS,
)


@given(KEYS)
def test_a_run_key_is_read_back_as_it_was_written(key: DedupeKey) -> None:
    """A key survives the way through text: logs, the queue, the command line."""
    assert DedupeKey.parse(str(key)) == key


def test_a_run_key_reads_like_the_design() -> None:
    """The job, the repository's id, the window, the input version; a forced run says by what."""
    key = DedupeKey(JobKey.DAILY, REPOSITORY, "2026-09-16", "p3f2a91c0")
    assert str(key) == "daily-issue-triage:R1296269:2026-09-16:p3f2a91c0"
    forced = DedupeKey(JobKey.RETRIAGE, REPOSITORY, "comment-7", "p3f2a91c0", "812")
    assert str(forced) == "issue-retriage:R1296269:comment-7:p3f2a91c0:forced-812"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":::",
        "daily-issue-triage",
        "daily-issue-triage:R1296269:2026-09-16",
        "nightly:R1296269:2026-09-16:p3f2a91c0",
        "daily-issue-triage:1296269:2026-09-16:p3f2a91c0",
        "daily-issue-triage:R:2026-09-16:p3f2a91c0",
        "daily-issue-triage::2026-09-16:p3f2a91c0",
        "daily-issue-triage:R1296269::p3f2a91c0",
        "daily-issue-triage:R1296269:2026-09-16:",
        f"{DEDUPE_KEY}:forced-",
        f"{DEDUPE_KEY}:812",
        f"{DEDUPE_KEY}:forced-812:forced-813",
        f"{DEDUPE_KEY}\n",
        "daily-issue-triage:R01296269:2026-09-16:p3f2a91c0",
        "daily-issue-triage:R١٢:2026-09-16:p3f2a91c0",
        "daily-issue-triage:R" + "9" * 5000 + ":2026-09-16:p3f2a91c0",
    ],
)
def test_what_is_no_run_key_is_named(text: str) -> None:
    """Two texts never name the same run: only the one form is read, and the error shows it."""
    with pytest.raises(MalformedKeyError, match="is no run key; one looks like daily-issue") as it:
        DedupeKey.parse(text)
    assert repr(text) in str(it.value)


def test_effect_keys_stay_what_they_are() -> None:
    """These values are on GitHub, in markers that are never written anew: they must not change."""
    golden = {
        (4201, EffectKind.COMMENT, None): (
            "86fadede380ef0de87493ab58d7802828fe5543c19eb7e800ed0c6d07d3d5e2c"
        ),
        (4201, EffectKind.LABELS, None): (
            "84b9fc8b07f71094b51309e3472f777d53007f4bec1162885eba3e5c3b84effc"
        ),
        (4201, EffectKind.UNLABEL, None): (
            "f712f2478ece0ab7016fb6de5aa1e2c68efc5224bff8f4f3d18e4ee45984e9a4"
        ),
        (0, EffectKind.SUMMARY, "2026-09-16"): (
            "204ab75fb5807d7c0fcbcccda35bf1119ef64b6ab93829f656a4537099000622"
        ),
        (0, EffectKind.SUMMARY, None): (
            "0e8b3c5e353697a123506388606096bb22f1d7c25734982d85c378c49f313b4f"
        ),
    }
    assert {
        (issue_id, kind, window): effect_key(REPOSITORY, issue_id, Family.TRIAGE, kind, window)
        for issue_id, kind, window in golden
    } == golden


def test_an_issue_has_one_comment_whichever_job_writes_it() -> None:
    """The daily run and a command are one family: they meet in the same effect."""
    keys = {
        effect_key(REPOSITORY, 4201, FAMILY[job], EffectKind.COMMENT)
        for job in (JobKey.DAILY, JobKey.RETRIAGE)
    }
    assert len(keys) == 1


def test_every_job_has_its_family_and_the_families_share_nothing() -> None:
    """A review's issue is never taken for a summary of the triage."""
    assert FAMILY.keys() == set(JobKey)
    keys = {effect_key(REPOSITORY, 0, family, EffectKind.SUMMARY) for family in Family}
    assert len(keys) == len(Family) == 3


EFFECTS = st.tuples(
    st.integers(0, 9), st.integers(0, 9), st.sampled_from(EffectKind), st.sampled_from([None, "w"])
)


@given(EFFECTS, EFFECTS)
def test_different_effects_have_different_keys(
    one: tuple[int, int, EffectKind, str | None], other: tuple[int, int, EffectKind, str | None]
) -> None:
    """Repository, issue, kind and window tell effects apart, and nothing else does."""

    def key(repository: int, issue: int, kind: EffectKind, window: str | None) -> str:
        return effect_key(repository, issue, Family.TRIAGE, kind, window)

    assert (key(*one) == key(*other)) == (one == other)


CHANGES: dict[str, Any] = {
    "schedule": {"timezone": "Asia/Taipei"},
    "mode": "label",
    "labels": {"bug": "something else"},
    "exclusive": [],
    "min_confidence": 0.71,
    "max_issues": 51,
    "backlog": "full",
    "language": "de",
    "summary": "off",
    "on_opened": True,
    "commands": {"retriage": "write"},
    "code": True,
    "budget_usd": {"cold": 3},
    "max_turns": {"cold": 41},
}


def version_of(mode: Mode = Mode.COMMENT, prompt: str = "1", **settings: Any) -> str:
    """The input version of a policy with some settings changed."""
    return input_version(policy(**settings).model_dump(mode="json"), mode, prompt)


@pytest.mark.parametrize("setting", CHANGES)
def test_each_setting_is_an_input(setting: str) -> None:
    """A changed policy may decide differently: it gives a new version."""
    if setting == "labels":
        assert version_of(labels=CHANGES["labels"], exclusive=[]) != version_of(exclusive=[])
    else:
        assert version_of(**{setting: CHANGES[setting]}) != version_of()


def test_every_setting_is_tried() -> None:
    """The test above forgets none; ``memory`` has one value."""
    assert {*CHANGES, "memory"} == type(policy()).model_fields.keys()


def test_mode_and_prompt_are_inputs() -> None:
    """A raised mode and a changed question are a new version each."""
    versions = {version_of(mode, prompt) for mode in Mode for prompt in ("1", "2")}
    assert len(versions) == 6


def test_nothing_else_is_an_input() -> None:
    """The version is a digest of these three, whatever the order in which settings are written."""
    plain = policy().model_dump(mode="json")
    backwards = dict(reversed(plain.items()))
    assert input_version(backwards, Mode.LABEL, "1") == input_version(plain, Mode.LABEL, "1")
    assert input_version({"labels": {"bug": "b"}}, Mode.LABEL, "1") == "pf0de6f1e"


def test_modes_have_an_order() -> None:
    """Trust is raised step by step."""
    strengths = [Mode.OBSERVE.strength, Mode.LABEL.strength, Mode.COMMENT.strength]
    assert strengths == [0, 1, 2]


def test_what_a_second_request_would_double() -> None:
    """Comments and issues; labels, edits and removals are idempotent at GitHub."""
    assert {kind for kind in EffectKind if kind.creates} == {EffectKind.COMMENT, EffectKind.SUMMARY}


def test_a_digest_is_of_canonical_json() -> None:
    """The order of keys, and how a character is written, make no difference."""
    assert digest_of({"b": 1, "a": "é"}) == digest_of(json.loads('{"a": "\\u00e9", "b": 1}'))
