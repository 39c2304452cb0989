"""Each fault does what its words say, to the requests that it names and to no others."""

from __future__ import annotations

import pytest

from sandbox.github import Fault, GitHub, Respond
from sandbox.github.faults import (
    GET_ISSUE,
    LIST_COMMENTS,
    PATCH_COMMENT,
    POST_COMMENT,
    POST_ISSUE,
    POST_LABELS,
    Struck,
)
from tests.sandbox.github_world import (
    REPO,
    REPO_ID,
    Api,
    HandClock,
    as_app,
    dropped,
    hung,
    make_world,
)

ISSUE = f"/repos/{REPO}/issues/1"
COMMENTS = f"{ISSUE}/comments"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def github(clock: HandClock) -> GitHub:
    world = make_world(clock)
    world.add_issue(REPO, "It crashes", "On start.", author="bob")
    return world


@pytest.fixture
def api(github: GitHub) -> Api:
    return as_app(github)


def bodies(github: GitHub) -> list[str]:
    return [each.body for each in github.comments(REPO, 1)]


def post(api: Api, body: str = "x") -> Respond:
    return api("POST", COMMENTS, {"body": body})


def test_apply_then_drop(github: GitHub, api: Api) -> None:
    github.fail(POST_COMMENT, "apply then drop")
    assert dropped(api.ask("POST", COMMENTS, {"body": "x"}))
    assert bodies(github) == ["x"]
    (entry,) = github.requests("POST", "/comments")
    assert (entry.status, entry.applied, entry.fault) == ("drop", True, "apply then drop")


def test_drop(github: GitHub, api: Api) -> None:
    github.fail(POST_COMMENT, "drop")
    assert dropped(api.ask("POST", COMMENTS, {"body": "x"}))
    assert bodies(github) == []
    assert [each.applied for each in github.requests("POST", "/comments")] == [False]


def test_apply_then_a_server_error(github: GitHub, api: Api) -> None:
    github.fail(POST_COMMENT, "apply then 502")
    answer = post(api)
    assert (answer.status, bodies(github)) == (502, ["x"])
    assert b"Server Error" in answer.body
    assert github.requests("POST", "/comments")[0].applied


@pytest.mark.parametrize("status", ["500", "502", "503", "418"])
def test_a_server_error_alone(github: GitHub, api: Api, status: str) -> None:
    github.fail(POST_COMMENT, status)
    assert (post(api).status, bodies(github)) == (int(status), [])


@pytest.mark.parametrize(("action", "told"), [("502 then apply", 502), ("drop then apply", "drop")])
def test_a_late_request_lands_after_the_answer(
    github: GitHub, api: Api, action: str, told: object
) -> None:
    """The gateway gives up, the write happens later."""
    github.fail(POST_COMMENT, action, seconds=5)
    api.ask("POST", COMMENTS, {"body": "late"})
    (entry,) = github.requests("POST", "/comments")
    assert (entry.status, entry.applied, bodies(github)) == (told, False, [])
    github.move_clock(4)
    assert bodies(github) == []
    github.move_clock(1)
    assert bodies(github) == ["late"]
    assert entry.applied


def test_a_late_request_may_wait_to_be_told(github: GitHub, api: Api, clock: HandClock) -> None:
    github.fail(POST_COMMENT, "502 then apply")
    post(api)
    clock.move(3600)
    assert bodies(github) == []
    assert github.land_late() == 1
    assert (bodies(github), github.land_late()) == (["x"], 0)


def test_hang_before_applying(github: GitHub, api: Api) -> None:
    github.fail(POST_COMMENT, "hang before applying", seconds=30)
    hang = hung(api.ask("POST", COMMENTS, {"body": "x"}))
    assert (hang.seconds, bodies(github)) == (30, [])
    answer = hang.resume()
    assert isinstance(answer, Respond)
    assert (answer.status, bodies(github)) == (201, ["x"])
    assert hang.resume() is answer
    assert bodies(github) == ["x"]


def test_a_hung_request_lands_though_nobody_waits(
    github: GitHub, api: Api, clock: HandClock
) -> None:
    github.fail(POST_COMMENT, "hang before applying", seconds=30)
    hung(api.ask("POST", COMMENTS, {"body": "x"}))
    clock.move(29)
    assert api.list(COMMENTS) == []
    clock.move(1)
    assert len(api.list(COMMENTS)) == 1
    (entry,) = github.requests("POST", "/comments")
    assert (entry.status, entry.applied) == (201, True)


def test_hang_after_applying(github: GitHub, api: Api) -> None:
    github.fail(POST_COMMENT, "hang after applying", seconds=30)
    hang = hung(api.ask("POST", COMMENTS, {"body": "x"}))
    assert bodies(github) == ["x"]
    assert github.requests("POST", "/comments")[0].status == "hang"
    answer = hang.resume()
    assert isinstance(answer, Respond)
    assert (answer.status, bodies(github)) == (201, ["x"])


def test_faults_add_up(github: GitHub, api: Api) -> None:
    """Hangs, then applies, then drops."""
    github.fail(POST_COMMENT, "hang before applying", seconds=1)
    github.fail(POST_COMMENT, "apply then drop")
    assert dropped(hung(api.ask("POST", COMMENTS, {"body": "x"})).resume())
    assert bodies(github) == ["x"]
    assert github.requests()[-1].fault == "hang before applying; apply then drop"


@pytest.mark.parametrize("retry_after", [None, 60])
@pytest.mark.parametrize(("action", "status"), [("403 secondary", 403), ("429", 429)])
def test_the_secondary_limit(
    github: GitHub, api: Api, action: str, status: int, retry_after: int | None
) -> None:
    github.fail(POST_COMMENT, action, retry_after=retry_after)
    answer = post(api)
    assert (answer.status, bodies(github)) == (status, [])
    assert b"secondary rate limit" in answer.body
    assert answer.headers.get("retry-after") == (None if retry_after is None else "60")
    assert int(answer.headers["x-ratelimit-remaining"]) > 0


def test_the_primary_limit(github: GitHub, api: Api, clock: HandClock) -> None:
    github.fail(POST_COMMENT, "403 primary", seconds=90)
    answer = post(api)
    assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (403, "0")
    assert int(answer.headers["x-ratelimit-reset"]) == int(clock.moment.timestamp()) + 90
    assert b"API rate limit exceeded" in answer.body


def test_bad_credentials(github: GitHub, api: Api) -> None:
    github.fail(POST_COMMENT, "401")
    answer = post(api)
    assert answer.status == 401
    assert b"Bad credentials" in answer.body
    assert post(api).status == 201


def test_which_requests_it_strikes(github: GitHub, api: Api) -> None:
    """The second match, and from there each third, twice."""
    armed = github.fail(POST_COMMENT, "502", occurrence=2, every=3, times=2)
    assert [post(api).status for _ in range(9)] == [201, 502, 201, 201, 502, 201, 201, 201, 201]
    assert armed.spent


def test_it_is_matched_by_the_path_by_name(github: GitHub, api: Api) -> None:
    github.fail("POST ^/repos/acme/api/issues/1/comments$", "502", times=None)
    by_id = f"/repositories/{REPO_ID}/issues/1/comments"
    assert api("POST", by_id, {"body": "x"}).status == 502
    assert post(api).status == 502
    assert api("GET", COMMENTS).status == 200


def test_it_is_matched_by_who_and_by_body(github: GitHub, api: Api) -> None:
    github.fail(POST_ISSUE, "502", body="Summary of", who=r"retriage\[bot\]", times=None)
    title = "Summary of today"
    eve = Api(github, github.add_token("eve"))
    assert eve("POST", f"/repos/{REPO}/issues", {"title": title}).status == 201
    assert api("POST", f"/repos/{REPO}/issues", {"title": "Other"}).status == 201
    assert api("POST", f"/repos/{REPO}/issues", {"title": title}).status == 502


def test_they_can_be_cleared(github: GitHub, api: Api) -> None:
    first = github.fail(POST_COMMENT, "502", times=None)
    github.fail(POST_COMMENT, "503", times=None)
    github.faults.clear(first.id)
    assert post(api).status == 503
    github.faults.clear()
    assert post(api).status == 201


@pytest.mark.parametrize(
    ("act", "then"),
    [
        ({"action": "lock"}, 403),
        ({"action": "delete_issue"}, 410),
        ({"action": "transfer", "to": "acme/web"}, 301),
        ({"action": "close"}, 201),
    ],
)
def test_someone_acts_before_it_is_applied(
    github: GitHub, api: Api, act: dict[str, object], then: int
) -> None:
    """Repository and issue are those of the request."""
    github.fail(POST_COMMENT, "act before applying", act={"actor": "alice", **act})
    assert post(api).status == then


def test_someone_acts_after_it_is_applied(github: GitHub, api: Api) -> None:
    """The comment is the one that was just made."""
    act = {"actor": "alice", "action": "delete_comment"}
    github.fail(POST_COMMENT, "act after applying", act=act)
    assert (post(api).status, bodies(github)) == (201, [])
    edit = {"actor": "alice", "action": "edit_comment", "body": "by alice"}
    github.fail(POST_COMMENT, "act after applying", act=edit)
    assert (post(api).status, bodies(github)) == (201, ["by alice"])


def test_someone_edits_the_comment_before_the_bot_does(github: GitHub, api: Api) -> None:
    made = api.json("POST", COMMENTS, {"body": "x"})
    act = {"actor": "alice", "action": "delete_comment"}
    github.fail(PATCH_COMMENT, "act before applying", act=act)
    assert api("PATCH", f"/repos/{REPO}/issues/comments/{made['id']}", {"body": "y"}).status == 404


def test_someone_takes_the_label_away(github: GitHub, api: Api) -> None:
    act = {"actor": "alice", "action": "unlabel", "names": ["bug"]}
    github.fail(POST_LABELS, "act after applying", act=act)
    api("POST", f"{ISSUE}/labels", ["bug", "question"])
    assert github.labels(REPO, 1) == ["question"]
    github.fail(
        POST_LABELS,
        "act before applying",
        act={"actor": "alice", "action": "delete_label", "name": "bug"},
    )
    api("POST", f"{ISSUE}/labels", ["bug"])
    assert github.repository(REPO).labels["bug"].color == "ededed"


def test_an_act_may_be_a_function(github: GitHub, api: Api) -> None:
    def act(struck: Struck) -> None:
        github.as_user("eve").comment(REPO, 1, f"after {struck.method} by {struck.who}")

    github.fail(GET_ISSUE, "act after applying", act=act)
    api("GET", ISSUE)
    assert bodies(github) == ["after GET by retriage[bot]"]


@pytest.mark.parametrize(("when", "seen"), [("before", []), ("after", ["x"])])
def test_a_callback_runs_exactly_there(
    github: GitHub, api: Api, when: str, seen: list[str]
) -> None:
    found: list[tuple[Struck, list[str]]] = []
    github.fail(
        POST_COMMENT,
        f"call {when} applying",
        call=lambda struck: found.append((struck, bodies(github))),
    )
    assert post(api).status == 201
    ((struck, then),) = found
    assert (struck.path, then) == (COMMENTS, seen)
    assert (struck.answer is None) is (when == "before")


def test_a_callback_may_ask_the_sandbox(github: GitHub, api: Api) -> None:
    """It runs outside the lock, and sees what was applied."""
    seen: list[int] = []
    github.fail(
        POST_COMMENT, "call after applying", call=lambda _: seen.append(len(api.list(COMMENTS)))
    )
    post(api)
    assert seen == [1]


def test_a_suggestion_is_not_applied(github: GitHub, api: Api) -> None:
    github.fail(POST_LABELS, "suggest")
    assert api("POST", f"{ISSUE}/labels", ["bug"]).json() == []
    assert github.labels(REPO, 1) == []


def test_a_fault_on_reading(github: GitHub, api: Api) -> None:
    github.fail(LIST_COMMENTS, "502")
    assert [api("GET", COMMENTS).status for _ in range(2)] == [502, 200]


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "explode"},
        {"action": "apply then 502 then apply"},
        {"action": "act before applying"},
        {"action": "call after applying"},
        {"action": "502", "occurrence": 0},
        {"action": "502", "times": 0},
    ],
)
def test_a_fault_that_makes_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no such fault|say|count from 1"):
        Fault(**wrong)  # type: ignore[arg-type]
