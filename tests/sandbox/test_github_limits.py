"""The limits: off by default, GitHub's when switched on."""

from __future__ import annotations

import pytest

from sandbox.github import GitHub
from tests.sandbox.github_world import REPO, Api, HandClock, as_app, as_user, make_world

COMMENTS = f"/repos/{REPO}/issues/1/comments"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def github(clock: HandClock) -> GitHub:
    world = make_world(clock)
    world.add_issue(REPO, "It crashes")
    return world


def posted(api: Api, times: int) -> list[int]:
    return [api("POST", COMMENTS, {"body": "x"}).status for _ in range(times)]


def test_they_are_off(github: GitHub) -> None:
    assert set(posted(as_app(github), 600)) == {201}


def test_eighty_a_minute(github: GitHub, clock: HandClock) -> None:
    github.limits.switch_on()
    api = as_app(github)
    assert posted(api, 80) == [201] * 80
    clock.move(20)
    answer = api("POST", COMMENTS, {"body": "x"})
    assert (answer.status, answer.headers["retry-after"]) == (403, "40")
    assert b"secondary rate limit" in answer.body
    assert api("GET", COMMENTS).status == 200
    assert posted(as_user(github, "eve"), 1) == [201]
    clock.move(40)
    assert posted(api, 81) == [201] * 80 + [403]
    assert len(github.comments(REPO, 1)) == 161


def test_five_hundred_an_hour(github: GitHub, clock: HandClock) -> None:
    github.limits.switch_on()
    api = as_app(github)
    for _ in range(10):
        assert posted(api, 50) == [201] * 50
        clock.move(60)
    answer = api("POST", COMMENTS, {"body": "x"})
    assert (answer.status, answer.headers["retry-after"]) == (403, "3000")
    clock.move(3000)
    assert posted(as_app(github), 51) == [201] * 50 + [403]


def test_time_can_run_faster_for_them(github: GitHub, clock: HandClock) -> None:
    github.limits.switch_on(scale=60, retry_after=False)
    api = as_app(github)
    posted(api, 80)
    answer = api("POST", COMMENTS, {"body": "x"})
    assert (answer.status, "retry-after" in answer.headers) == (403, False)
    clock.move(1)
    assert posted(api, 1) == [201]


def test_the_primary_limit(github: GitHub, clock: HandClock) -> None:
    github.limits.switch_on(primary_per_hour=3)
    api = as_app(github)
    left = [api("GET", COMMENTS).headers["x-ratelimit-remaining"] for _ in range(3)]
    assert left == ["2", "1", "0"]
    answer = api("GET", COMMENTS)
    assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (403, "0")
    assert int(answer.headers["x-ratelimit-reset"]) == int(clock.moment.timestamp()) + 3600
    told = api.json("GET", "/rate_limit")["rate"]
    assert isinstance(told, dict)
    assert told["remaining"] == 0
    clock.move(3600)
    assert as_app(github)("GET", COMMENTS).status == 200


def test_every_answer_tells_the_limit(github: GitHub) -> None:
    api = as_app(github)
    for path in (COMMENTS, "/repos/acme/none", "/installation/repositories"):
        headers = api("GET", path).headers
        assert headers["x-ratelimit-limit"] == "5000"
        assert headers["x-ratelimit-resource"] == "core"
        assert headers["x-github-request-id"]
