"""``retriage run --job``: the review and the watch by the command, and what it says of each end."""

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ledger.connection import connect, connect_sync
from ledger.counters import Counts
from ledger.ledger import open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from sandbox.model import Misbehaviour
from sandbox.web import WebServer
from sandbox.web.samples import Release, feed
from tests.cli.terminal import NO_APP, REPOSITORY, Ended, World, today, world

REVIEW, WATCH = "nightly-repo-review", "resource-watch"
FAULT = "try:\n    work()\nexcept:\n    pass\n"
REVIEWS = """\
jobs:
  nightly-repo-review:
    schedule: {every: hourly, at: "00:00", timezone: UTC}
    mode: comment
"""
HOURS = tuple(f"{datetime.now(UTC) - timedelta(hours=12 - n):%Y-%m-%dT%H}" for n in range(12))
DAY = datetime(2026, 9, 16, tzinfo=UTC)


def reviewed(here: World, window: str, *words: str) -> Ended:
    """One review."""
    return here.terminal.type("run", "--job", REVIEW, REPOSITORY, "--window", window, *words)


def counts(here: World) -> Counts:
    """What the metrics are made of."""

    async def read(url: str) -> Counts:
        async with connect(url) as client:
            return await open_ledger(client, LedgerTiming()).counters.snapshot()

    with EmbeddedServer(here.terminal.data) as server:
        return asyncio.run(read(server.url))


@pytest.fixture
def reviews(tmp_path: Path) -> Iterator[World]:
    """A repository with a fault, whose policy has the review alone."""
    with world(tmp_path, policy=REVIEWS) as made:
        made.github.put_file(REPOSITORY, "a.py", FAULT)
        yield made


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same for runs that end before they write."""
    with world(tmp_path_factory.mktemp("failing"), policy=REVIEWS) as made:
        made.github.put_file(REPOSITORY, "a.py", FAULT)
        yield made


def test_nights_build_on_each_other(reviews: World) -> None:
    """Cold, resumed, not continuous, cold again: each says so in its line, in ``runs`` and in
    ``show``; the same window again asks nobody."""
    first = reviewed(reviews, HOURS[0])
    assert first.code == 0, first.err
    assert first.out.startswith(f"✓ completed  {REVIEW} {HOURS[0]}  {REPOSITORY}")
    assert "; cold (first-review)\n" in first.err
    assert "\nREVIEW-VERDICT concerns run=" in first.err
    assert "\nRUN-COMPLETED run=" in first.err
    asked = len(reviews.model.requests)
    again = reviewed(reviews, HOURS[0])
    assert (again.code, len(reviews.model.requests)) == (0, asked)
    assert "RUN-REUSED " in again.err

    reviews.github.put_file(REPOSITORY, "b.py", FAULT)
    second = reviewed(reviews, HOURS[1])
    assert second.code == 0, second.err
    assert f"; resumed (after {HOURS[0]})\n" in second.err
    link = "same_session=true prior_review_id_echoed=true recalled_findings=1/1 current_findings=2"
    assert f"\nRESUME-LINK {link} run=" in second.err

    reviews.model.misbehave(Misbehaviour.FORGET)
    third = reviewed(reviews, HOURS[2])
    assert third.code == 0, third.err
    for word in ("RESUME-LINK-BROKEN", "SESSION-CLEARED"):
        assert f"\n{word} run=" in third.err
    counted = counts(reviews)
    assert (counted.recalled, counted.broken_links) == ({(REPOSITORY, REVIEW): 0.0}, 1)
    reviews.model.reset()
    fourth = reviewed(reviews, HOURS[3])
    assert "; cold (link-broken" in fourth.err

    table = reviews.terminal.type("runs", "--job", REVIEW)
    heading, *rows = table.out.splitlines()
    assert heading.split()[4:6] == ["Verdict", "Recall"]
    told = [row.partition("concerns")[2].split("  ") for row in rows]
    recalls = [next((word.strip() for word in words if word.strip()), "") for words in told]
    assert recalls[1:3] == ["0/2, continuous: no", "1/1"]
    for columns in ("40", "120"):  # a table would cut the keys
        narrow = reviews.terminal.type("runs", "--job", REVIEW, COLUMNS=columns)
        assert "  concerns  0/2, continuous: no\n" in narrow.out
    listed = reviews.terminal.type("runs", "--job", REVIEW, "--json").json["runs"]
    links = [item["review"]["link"] for item in listed]
    assert [link and link["continuous"] for link in links] == [None, False, True, None]
    assert (links[2]["recalled_findings"], links[2]["prior_findings"]) == (1, 1)
    none = reviews.terminal.type("runs", "--job", "daily-issue-triage")
    assert none.err.startswith("No run of the job daily-issue-triage is in the ledger.")
    shown = reviews.terminal.type("show", listed[2]["dedupe_key"], "--json").json
    assert shown["review"]["link"]["recalled_findings"] == "1/1"


@pytest.mark.parametrize(
    ("night", "kind", "reason"),
    [
        (0, Misbehaviour.NO_ANSWER, "no-structured-output"),
        (1, Misbehaviour.OUTSIDE_SCHEMA, "schema"),
        (2, Misbehaviour.ENDLESS_TOOLS, "max-turns"),
        (3, Misbehaviour.EXPENSIVE, "budget"),
        (4, Misbehaviour.CUT_STREAM, "api"),
        (5, Misbehaviour.UNAUTHORIZED, "auth"),
        (6, Misbehaviour.NOT_FOUND, "no-model"),
        (7, Misbehaviour.RATE_LIMITED, "rate-limited"),
        (8, Misbehaviour.OVERLOADED, "overloaded"),
    ],
)
def test_the_model_gives_no_review(
    failing: World, night: int, kind: Misbehaviour, reason: str
) -> None:
    """1, the word with its reason, the command that asks again; nothing in public."""
    failing.model.reset()
    failing.model.misbehave(kind)
    ended = reviewed(failing, HOURS[night])
    assert ended.code == 1, ended.err
    said = f'reason="the model gave no plan: {reason}"'
    line = next(line for line in ended.err.splitlines() if line.startswith("RUN-"))
    assert line.startswith(f"RUN-FAILED stage=before-write run={REVIEW}:")
    assert said in line
    assert ended.out.splitlines()[-1] == (
        f"Again: retriage run {REPOSITORY} --job {REVIEW} --window {HOURS[night]}"
    )
    assert failing.writes() == []


def test_no_checkout(failing: World) -> None:
    """1, with the reason; the model is not asked."""
    failing.model.reset()
    failing.github.put_file(REPOSITORY, "new.py", FAULT)
    failing.github.fail(f"POST /{REPOSITORY}.git/git-upload-pack", "502", times=5)
    ended = reviewed(failing, HOURS[9])
    assert ended.code == 1
    assert re.search(
        rf'^RUN-FAILED stage=before-write run={REVIEW}:.* reason="no checkout: ',
        ended.err,
        re.MULTILINE,
    )
    assert failing.model.requests == ()


def test_spent_limits_keep_the_session_and_a_lost_one_is_cleared(reviews: World) -> None:
    """The settings need a change, not the state: the next window resumes. Where the transcript is
    gone it starts cold."""
    assert reviewed(reviews, HOURS[0]).code == 0
    reviews.model.misbehave(Misbehaviour.EXPENSIVE)
    spent = reviewed(reviews, HOURS[1])
    assert (spent.code, "SESSION-CLEARED" in spent.err) == (1, False)
    reviews.model.reset()
    resumed = reviewed(reviews, HOURS[2])
    assert "recalled_findings=1/1" in resumed.err
    with EmbeddedServer(reviews.terminal.data) as server, connect_sync(server.url) as client:
        (session,) = [key for key in client.keys("session:*") if b":staged:" not in key]
        client.ltrim(session, 0, 0)
        client.lset(session, 0, "{}")
    lost = reviewed(reviews, HOURS[3])
    assert lost.code == 1
    assert "\nSESSION-CLEARED run=" in lost.err
    assert "\nRUN-FAILED stage=before-write run=" in lost.err
    assert "the model gave no plan: session-lost" in lost.err
    cold = reviewed(reviews, HOURS[4])
    assert cold.code == 0
    assert "; cold (session-cleared" in cold.err


def test_what_the_agent_is_denied_is_said(reviews: World) -> None:
    """Each kind once, and the review is not stopped by it."""
    outside = ("Read", {"file_path": "/etc/passwd"})
    reviews.model.use(outside, outside, ("Glob", {"pattern": "../*"}))
    ended = reviewed(reviews, HOURS[0])
    assert ended.code == 0
    denied = [line for line in ended.err.splitlines() if line.startswith("AGENT-DENIED")]
    assert len(denied) == 2
    assert " tool=Read field=file_path reason=" in denied[0]
    assert denied[0].endswith(" times=2")
    (run,) = reviews.terminal.type("runs", "--json").json["runs"]
    assert reviews.terminal.type("show", run["dedupe_key"], "--json").json["denials"] == 3
    assert counts(reviews).denials == 3


def test_the_watch(tmp_path: Path) -> None:
    """It fetches once a window and writes its report alone; a person's token will do."""
    with WebServer() as web:
        policy = (
            "jobs:\n  resource-watch:\n"
            '    schedule: {every: hourly, at: "00:00", timezone: UTC}\n'
            f'    resources: [{{name: releases, url: "{web.url}/feed", kind: feed}}]\n'
        )
        web.put("/feed", feed("releases", [Release("1.0", DAY)]))
        with world(tmp_path, policy=policy, first=False) as here:
            settings = {
                **NO_APP,
                "GITHUB_TOKEN": here.github.add_token("alice"),
                "RETRIAGE_WATCH_LOOPBACK": "true",
            }

            def watched(window: str, *words: str) -> Ended:
                given = ("run", "--job", WATCH, REPOSITORY, "--window", window, *words)
                return here.terminal.type(*given, **settings)

            first = watched(HOURS[0])
            assert first.code == 0, first.err
            assert "Snapshot   1 resource, cut-off " in first.err
            assert ": 1 first seen  ~$0.000\n" in first.err
            assert "\nRUN-" in first.err
            assert f"/reports/{REPOSITORY}/{WATCH}/{HOURS[0]}.md\n" in first.out
            assert watched(HOURS[0]).code == 0
            assert len(web.asked("/feed")) == 1
            web.put("/feed", feed("releases", [Release("1.0", DAY), Release("1.1", DAY)]))
            second = watched(HOURS[1])
            assert second.code == 0, second.err
            assert ": 1 changed  ~$" in second.err
            assert "1.1" in second.out
            again = watched(HOURS[1], "--force")
            assert again.code == 0, again.err
            assert len(web.asked("/feed")) == 3
            assert again.out.count("## Run `") == 2
            web.remove("/feed")
            third = watched(HOURS[2])
            assert third.code == 0, third.err
            assert "Snapshot   1 resource, 1 not read, cut-off " in third.err
            assert here.writes() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--job", "nightly-repo-reviews"), "did you mean nightly-repo-review?"),
        (("--job", "issue-retriage"), "is started on an issue, by the comment /retriage"),
        (("--job", REVIEW, "--mode", "label"), "nightly-repo-review does observe or comment alone"),
        (("--job", WATCH, "--mode", "comment"), "resource-watch does observe alone"),
        (
            ("--job", WATCH),
            "the policy of acme/api has no resource-watch, only daily-issue-triage: add it to "
            ".github/retriage.yml; an example: retriage check --example",
        ),
    ],
)
def test_a_job_that_cannot_be_run(shared: World, words: tuple[str, ...], said: str) -> None:
    """One line, with the way out, and 2."""
    ended = shared.terminal.type("run", REPOSITORY, *words)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert said in line


def test_jobs_are_told_apart_in_one_ledger(here: World) -> None:
    """Each has its runs under its name."""
    assert here.terminal.type("run", REPOSITORY, "--mode", "observe").code == 0
    for job, number in (("daily-issue-triage", 1), (REVIEW, 0), ("issue-retriage", 0)):
        found = here.terminal.type("runs", "--job", job, "--json").json["runs"]
        assert [item["window_key"] for item in found] == [today()] * number
    assert here.terminal.type("runs", "--job", "triage").code == 2
