"""The nightly review and the resource watch in the policy file."""

from copy import deepcopy
from datetime import time
from typing import Any

import pytest

from tests.triage.json_schema import problems
from tests.triage.test_policy import DAILY, errors, lined
from triage.contract import RunInputs
from triage.identifiers import JobKey, Mode, input_version
from triage.policy import (
    AnyJobPolicy,
    JobPolicy,
    Policy,
    PolicyDocument,
    ResetEvery,
    Resource,
    ResourceKind,
    ReviewPolicy,
    WatchPolicy,
    merged,
    read_policy,
    schema,
)

REVIEW = "nightly-repo-review"
WATCH = "resource-watch"
FEED = {"name": "valkey", "url": "https://example.com/releases.atom", "kind": "feed"}
EXAMPLE: dict[str, Any] = {
    "jobs": {
        DAILY: {"labels": {"bug": "It fails"}, "code": True},
        REVIEW: {
            "schedule": {"every": "daily", "at": "02:00", "timezone": "UTC"},
            "mode": "comment",
            "memory": "resume",
            "reset": {"every": "weekly", "changed": 0.5, "recall": 0.5},
            "language": "en",
            "budget_usd": {"cold": 2.00, "resumed": 0.50},
            "max_turns": {"cold": 40, "resumed": 20},
        },
        WATCH: {
            "schedule": {"every": "hourly", "at": "00:30"},
            "resources": [FEED],
            "language": "en",
            "budget_usd": {"cold": 2.00, "resumed": 0.50},
            "max_turns": {"cold": 40, "resumed": 20},
        },
    }
}


def of(data: Any) -> Policy:
    """The policy in plain data."""
    return read_policy(PolicyDocument(data))


def watching(**changes: Any) -> dict[str, Any]:
    """A file that watches one resource with these changes."""
    return {"jobs": {WATCH: {"resources": [{**FEED, **changes}]}}}


def test_the_three_jobs_stand_side_by_side() -> None:
    """Each has its own settings, and a command those of the triage."""
    policy = of(EXAMPLE)
    assert [*policy.scheduled] == [JobKey.DAILY, JobKey.REVIEW, JobKey.WATCH]
    kinds = [type(policy.of(job)) for job in JobKey]
    assert kinds == [JobPolicy, JobPolicy, ReviewPolicy, WatchPolicy]
    assert policy.of(JobKey.RETRIAGE) is policy.triage
    assert policy.triage is not None
    assert policy.triage.code is True


@pytest.mark.parametrize("job", [DAILY, REVIEW, WATCH])
def test_each_job_may_stand_alone(job: str) -> None:
    """The others are then not there: nothing of them is started or answered."""
    policy = of({"jobs": {job: EXAMPLE["jobs"][job]}})
    assert [*policy.scheduled] == [JobKey(job)]
    assert (policy.triage is None) == (job != DAILY)


def test_the_review_has_its_defaults() -> None:
    """At two in the night it observes, resumes, and starts cold again every week."""
    review = of({"jobs": {REVIEW: {}}}).jobs.review
    assert review == ReviewPolicy()
    assert (review.mode, review.memory, review.language) == (Mode.OBSERVE, "resume", None)
    reset = review.reset
    assert (reset.every, reset.changed, reset.recall) == (ResetEvery.WEEKLY, 0.5, 0.5)
    assert review.schedule.schedule().at == time(2)
    assert (review.budget_usd.cold, review.budget_usd.resumed) == (2.00, 0.50)
    assert (review.max_turns.cold, review.max_turns.resumed) == (40, 20)


def test_the_watch_has_its_defaults_and_writes_nothing() -> None:
    """Only its resources are required; its mode cannot be set."""
    watch = of(watching()).jobs.watch
    assert watch == WatchPolicy(resources=(Resource.model_validate(FEED),))
    assert watch.mode is Mode.OBSERVE
    assert watch.resources[0].kind is ResourceKind.FEED
    assert (watch.schedule.schedule().at, watch.language) == (time(9), None)


@pytest.mark.parametrize(
    ("job", "settings", "shown"),
    [
        (REVIEW, {"mode": "label"}, "mode: a review labels nothing: write 'observe' or 'comment'"),
        (REVIEW, {"mod": "comment"}, "mod: unknown key; did you mean 'mode'?"),
        (REVIEW, {"labels": {}}, "labels: unknown key"),
        (REVIEW, {"reset": {"evry": "weekly"}}, "reset.evry: unknown key; did you mean 'every'?"),
        (
            REVIEW,
            {"reset": {"every": "daily"}},
            "reset.every: input should be 'never', 'weekly' or 'monthly'",
        ),
        (REVIEW, {"reset": {"changed": 0}}, "reset.changed: input should be greater than 0"),
        (
            REVIEW,
            {"reset": {"recall": 1.1}},
            "reset.recall: input should be less than or equal to 1",
        ),
        (REVIEW, None, "must be a map"),
        (WATCH, {}, "resources: is required"),
        (WATCH, {"resources": [FEED], "mode": "comment"}, "mode: unknown key"),
        (WATCH, {"resources": [FEED, {**FEED, "url": "https://b.example"}]}, None),
        (WATCH, {"resources": [FEED, {**FEED, "name": "b"}]}, None),
        (
            WATCH,
            {"resources": [{**FEED, "knd": 1}]},
            "resources.0.knd: unknown key; did you mean 'kind'?",
        ),
        (
            WATCH,
            {"resources": [{**FEED, "kind": "atom"}]},
            "resources.0.kind: input should be 'feed', 'releases' or 'page'",
        ),
        (WATCH, {"resources": [{**FEED, "name": " "}]}, None),
        (WATCH, {"resources": [{**FEED, "name": "a\nb"}]}, None),
        (WATCH, {"resources": []}, None),
    ],
)
def test_each_error_has_its_line(job: str, settings: Any, shown: str | None) -> None:
    """And its path, and the word that was probably meant."""
    [error] = errors(lined({"jobs": {job: settings}}))
    where = f"jobs.{job}"
    assert error.startswith("line ")
    assert where in error
    if shown is not None:
        joint = ": " if settings is None else "."
        assert error.partition(": ")[2] == f"{where}{joint}{shown}"


def test_names_and_addresses_are_told_apart() -> None:
    """A report names a resource, and a change is found by its address."""
    [twice] = errors(lined({"jobs": {WATCH: {"resources": [FEED, FEED]}}}))
    assert twice.endswith("the name 'valkey' stands there twice")


def test_fifty_resources_and_no_more() -> None:
    """Each is one request in every window."""
    many = [{**FEED, "name": f"n{n}", "url": f"https://example.com/{n}"} for n in range(51)]
    read_policy(PolicyDocument({"jobs": {WATCH: {"resources": many[:50]}}}))
    assert len(errors(lined({"jobs": {WATCH: {"resources": many}}}))) == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/releases.atom?per_page=5",
        "https://sub.example.co.uk:443/x",
        "https://xn--bcher-kva.example/feed",
        "http://127.0.0.1:8080/feed",
        "http://[::1]:8080/feed",
    ],
)
def test_an_address_that_may_be_watched(url: str) -> None:
    """https to a name; plain http to this machine, which the fetcher refuses outside tests."""
    [resource] = read_policy(PolicyDocument(watching(url=url))).jobs.watch.resources  # type: ignore[union-attr]
    assert resource.url == url


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://example.com/", "only https"),
        ("ftp://example.com/", "only https"),
        ("file:///etc/passwd", "no URL"),
        ("example.com/feed", "no URL"),
        ("https://", "no URL"),
        ("https://user:word@example.com/", "user or password"),
        ("https://token@example.com/", "user or password"),
        ("https://example.com/#top", "'#'"),
        ("https://example.com/#", "'#'"),
        ("https://localhost/", "no public name"),
        ("https://a.localhost/", "no public name"),
        ("http://localhost:8080/", "only https"),
        ("https://intranet/", "no public name"),
        ("https://127.0.0.1/", "address in place of a name"),
        ("https://10.0.0.1/", "address in place of a name"),
        ("https://93.184.216.34/", "address in place of a name"),
        ("https://[2001:db8::1]/", "address in place of a name"),
        ("https://127.1/", "address in place of a name"),
        ("https://0x7f.0.0.0x1/", "address in place of a name"),
        ("https://127.0.0.1./", "address in place of a name"),
        ("http://127.0.0.2/", "only https"),
        ("https://example.com:8443/", "only 443"),
        ("http://10.0.0.1/", "only https"),
        ("https://example.com:99999/", "no URL"),
        ("https://[::1/", "no URL"),
        ("https://exa mple.com/", "without spaces"),
        ("https://example.com/\n", "without spaces"),
        ("https://example.com\\@evil.example/", "without spaces"),
        ("https://bücher.example/", "ASCII"),
    ],
)
def test_an_address_that_is_not_watched(url: str, word: str) -> None:
    """Neither what leads into a private net, nor what two readers could take for different."""
    [error] = errors(lined(watching(url=url)))
    assert word in error


def test_a_longer_address_than_the_fetcher_takes_is_refused() -> None:
    """2,000 characters."""
    long = "https://example.com/" + "a" * 1981
    assert len(errors(lined(watching(url=long)))) == 1
    of(watching(url=long[:2000]))


def test_the_allow_list_is_an_input() -> None:
    """Another list, another address or another kind is another input version."""

    def version(**changes: Any) -> str:
        watch = of(watching(**changes)).jobs.watch
        assert watch is not None
        return input_version(watch.model_dump(mode="json"), watch.mode, "1")

    versions = {
        version(),
        version(url="https://example.com/other"),
        version(kind="page"),
        version(name="other"),
    }
    assert len(versions) == 4
    assert version() == version()


def test_the_organisations_jobs_are_merged_one_by_one() -> None:
    """A repository may add a review to the organisation's triage, and change one setting of it."""
    default = lined({"jobs": {DAILY: EXAMPLE["jobs"][DAILY], REVIEW: {"mode": "comment"}}})
    own = lined({"jobs": {REVIEW: {"memory": "findings"}, WATCH: EXAMPLE["jobs"][WATCH]}})
    policy = read_policy(merged(default, own))
    assert [*policy.scheduled] == [JobKey.DAILY, JobKey.REVIEW, JobKey.WATCH]
    assert policy.jobs.review == ReviewPolicy(mode=Mode.COMMENT, memory="findings")


@pytest.mark.parametrize("job", [JobKey.DAILY, JobKey.REVIEW, JobKey.WATCH])
def test_a_stored_run_keeps_the_kind_of_its_settings(job: JobKey) -> None:
    """No job's JSON is read as another job's, with every setting written or none."""
    every = of(EXAMPLE).of(job)
    least: AnyJobPolicy | None = {
        JobKey.DAILY: of(EXAMPLE).triage,
        JobKey.REVIEW: ReviewPolicy(),
        JobKey.WATCH: of(watching()).jobs.watch,
    }[job]
    for settings in (every, least):
        assert settings is not None
        stored = RunInputs.model_validate(
            {
                "dedupe_key": f"{job}:R1:2026-09-16:p3f2a91c0",
                "repository_id": 1,
                "repository": "acme/api",
                "installation": "5",
                "policy": settings,
                "mode": settings.mode,
                "by": "cron",
                "due_at": "2026-09-16T09:00:00Z",
            }
        )
        read = RunInputs.model_validate_json(stored.model_dump_json())
        assert type(read.policy) is type(settings)
        assert read == stored


def test_settings_of_another_family_are_not_taken_for_ones_own() -> None:
    """A stage that is given the wrong run fails at once."""
    values: dict[str, Any] = {
        "dedupe_key": "resource-watch:R1:2026-09-16:p3f2a91c0",
        "repository_id": 1,
        "repository": "acme/api",
        "installation": "5",
        "policy": of(watching()).jobs.watch,
        "mode": Mode.OBSERVE,
        "by": "cron",
        "due_at": "2026-09-16T09:00:00Z",
    }
    inputs = RunInputs.model_validate(values)
    assert inputs.watch.resources[0].name == "valkey"
    with pytest.raises(TypeError, match="is no triage"):
        _ = inputs.triage
    with pytest.raises(TypeError, match="is no review"):
        _ = inputs.review


# --- The schema ---------------------------------------------------------------------------------


def test_the_schema_takes_all_jobs() -> None:
    """An editor that uses it finds nothing wrong."""
    assert problems(schema(), EXAMPLE) == []


@pytest.mark.parametrize(
    ("job", "path", "value", "word"),
    [
        (REVIEW, ("mode",), "label", "mode: enum"),
        (REVIEW, ("memory",), "all", "memory: enum"),
        (REVIEW, ("reset", "every"), "daily", "reset.every: enum"),
        (REVIEW, ("reset", "recall"), 2, "reset.recall: maximum"),
        (WATCH, ("mode",), "observe", "mode: additionalProperties"),
        (WATCH, ("resources",), [], "resources: minItems"),
        (WATCH, ("resources",), [{**FEED, "kind": "atom"}], "resources.0.kind: enum"),
        (DAILY, ("code",), "yes", "code: type"),
    ],
)
def test_the_schema_knows_their_rules(
    job: str, path: tuple[str, ...], value: Any, word: str
) -> None:
    """What it refuses, the program refuses too."""
    data = deepcopy(EXAMPLE)
    target = data["jobs"][job]
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value
    assert problems(schema(), data) == [f".jobs.{job}.{word}"]
    assert errors(PolicyDocument(data))


def test_a_job_that_is_named_without_settings_is_an_error_for_both() -> None:
    """``nightly-repo-review:`` alone is YAML's null: write ``{}`` for the defaults."""
    data = {"jobs": {REVIEW: None}}
    assert problems(schema(), data)
    assert errors(lined(data)) == [f"line 2: jobs.{REVIEW}: must be a map"]
    assert of({"jobs": {REVIEW: {}}}).jobs.review == ReviewPolicy()
