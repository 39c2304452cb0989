"""Who may ask what: JWTs, tokens, permissions, suspension, privacy."""

from __future__ import annotations

import pytest

from sandbox.github import GitHub, Respond
from tests.sandbox.github_world import (
    OTHER_KEY,
    REPO,
    REPO_ID,
    START,
    Api,
    HandClock,
    app_jwt,
    as_app,
    as_user,
    make_world,
)

TOKENS = "/app/installations/5001/access_tokens"


def message(answer: Respond) -> str:
    content = answer.json()
    assert isinstance(content, dict)
    assert content["status"] == str(answer.status)
    return str(content["message"])


@pytest.mark.parametrize(
    ("token", "status", "told"),
    [
        (app_jwt(START), 201, None),
        (app_jwt(START, issuer="Iv23li00000000000042"), 201, None),
        (app_jwt(START, key=OTHER_KEY), 401, "A JSON web token could not be decoded"),
        (app_jwt(START, issuer=43), 404, "Integration not found"),
        (app_jwt(START, lasts=-1), 401, "must be a numeric value representing the future"),
        (app_jwt(START, lasts=700), 401, "is too far in the future"),
        (app_jwt(START, age=-300), 401, "'Issued at' claim ('iat')"),
        ("a.b.c", 401, "A JSON web token could not be decoded"),
        ("ghs_nobody", 401, "Bad credentials"),
        ("", 401, "Requires authentication"),
    ],
)
def test_a_jwt_is_really_checked(token: str, status: int, told: str | None) -> None:
    answer = Api(make_world(), token)("POST", TOKENS)
    assert answer.status == status
    if told is not None:
        assert told in message(answer)


def test_a_token_lasts_an_hour_of_the_sandboxs_time() -> None:
    github = make_world()
    api = as_app(github)
    github.move_clock(3599)
    assert api("GET", "/installation/repositories").status == 200
    github.move_clock(1)
    answer = api("GET", "/installation/repositories")
    assert (answer.status, message(answer)) == (401, "Bad credentials")
    assert as_app(github)("GET", "/installation/repositories").status == 200


def test_a_token_can_be_narrowed() -> None:
    github = make_world()
    app = Api(github, app_jwt(START))
    made = app.json(
        "POST", TOKENS, {"repository_ids": [REPO_ID], "permissions": {"issues": "read"}}
    )
    api = Api(github, str(made["token"]))
    assert made["repository_selection"] == "selected"
    assert api("GET", f"/repos/{REPO}/issues").status == 200
    answer = api("POST", f"/repos/{REPO}/issues", {"title": "x"})
    assert (answer.status, message(answer)) == (403, "Resource not accessible by integration")
    assert app("POST", TOKENS, {"permissions": {"actions": "write"}}).status == 422
    assert app("POST", TOKENS, {"repositories": ["nothing"]}).status == 422


def test_a_missing_permission_is_refused() -> None:
    github = make_world()
    github.installations[5001].permissions = {"metadata": "read", "issues": "read"}
    api = as_app(github)
    answer = api("POST", f"/repos/{REPO}/issues", {"title": "x"})
    assert (answer.status, message(answer)) == (403, "Resource not accessible by integration")


def test_a_suspended_installation_is_refused() -> None:
    github = make_world()
    api = as_app(github)
    github.suspend(5001)
    for answer in (
        api("GET", f"/repos/{REPO}/issues"),
        Api(github, app_jwt(START))("POST", TOKENS),
    ):
        assert (answer.status, message(answer)) == (403, "This installation has been suspended")
    github.unsuspend(5001)
    assert api("GET", f"/repos/{REPO}/issues").status == 200


def test_an_uninstalled_app_is_nobody() -> None:
    github = make_world()
    api = as_app(github)
    github.uninstall(5001)
    assert api("GET", f"/repos/{REPO}/issues").status == 401
    app = Api(github, app_jwt(START))
    assert app("POST", TOKENS).status == 404
    assert app("GET", f"/repos/{REPO}/installation").status == 404
    assert app("GET", "/orgs/acme/installation").status == 404


def test_a_private_repository_hides_from_others() -> None:
    github = make_world(private=True)
    github.add_issue(REPO, "Secret")
    for api in (Api(github), as_user(github, "eve")):
        assert api("GET", f"/repos/{REPO}").status == 404
        assert api("GET", f"/repositories/{REPO_ID}/issues/1").status == 404
        assert api("POST", f"/repos/{REPO}/issues/1/comments", {"body": "x"}).status == 404
    assert as_user(github, "alice")("GET", f"/repos/{REPO}").status == 200
    assert as_app(github)("GET", f"/repos/{REPO}/issues/1").status == 200


def test_outside_its_installation_an_app_only_reads_what_is_public() -> None:
    github = make_world()
    github.add_repository("zoe/own")
    github.add_repository("zoe/hidden", private=True)
    api = as_app(github)
    assert api("GET", "/repos/zoe/own/issues").status == 200
    answer = api("POST", "/repos/zoe/own/issues", {"title": "x"})
    assert (answer.status, message(answer)) == (403, "Resource not accessible by integration")
    assert api("POST", "/repos/zoe/hidden/issues", {"title": "x"}).status == 404


def test_people_go_by_their_role() -> None:
    github = make_world()
    github.add_collaborator(REPO, "tim", "triage")
    github.add_issue(REPO, "It crashes", author="bob")
    labels, comment = f"/repos/{REPO}/issues/1/labels", f"/repos/{REPO}/issues/1/comments"
    assert as_user(github, "eve")("POST", labels, ["bug"]).status == 403
    assert as_user(github, "tim")("POST", labels, ["bug"]).status == 200
    assert as_user(github, "tim")("PUT", f"/repos/{REPO}/issues/1/lock").status == 403
    assert as_user(github, "bob")("PATCH", f"/repos/{REPO}/issues/1", {"title": "x"}).status == 200
    assert as_user(github, "eve")("PATCH", f"/repos/{REPO}/issues/1", {"title": "y"}).status == 403
    eves = as_user(github, "eve").json("POST", comment, {"body": "Me too"})
    assert (
        as_user(github, "tim")(
            "PATCH", str(eves["url"]).removeprefix(github.base_url), {"body": "x"}
        ).status
        == 403
    )
    made = as_user(github, "eve").json(
        "POST", f"/repos/{REPO}/issues", {"title": "t", "labels": ["bug"]}
    )
    assert made["labels"] == []
    assert Api(github)("POST", comment, {"body": "x"}).status == 401


@pytest.mark.parametrize(
    ("login", "permission", "role"),
    [
        ("alice", "write", "write"),
        ("tim", "read", "triage"),
        ("max", "write", "maintain"),
        ("ann", "admin", "admin"),
        ("eve", "read", "read"),
    ],
)
def test_the_permission_of_a_collaborator(login: str, permission: str, role: str) -> None:
    github = make_world()
    for name, given in (("tim", "triage"), ("max", "maintain"), ("ann", "admin")):
        github.add_collaborator(REPO, name, given)
    github.add_user("eve")
    found = as_app(github).json("GET", f"/repos/{REPO}/collaborators/{login}/permission")
    assert (found["permission"], found["role_name"]) == (permission, role)


def test_the_permission_of_others() -> None:
    github = make_world(private=True)
    github.add_user("eve")
    api, path = as_app(github), f"/repos/{REPO}/collaborators"
    assert api.json("GET", f"{path}/eve/permission")["permission"] == "none"
    answer = api("GET", f"{path}/retriage%5Bbot%5D/permission")
    assert (answer.status, message(answer)) == (404, "retriage[bot] is not a user")


def test_the_bot_is_a_user_of_its_own() -> None:
    github = make_world()
    found = as_app(github).json("GET", "/users/retriage%5Bbot%5D")
    assert (found["login"], found["type"]) == ("retriage[bot]", "Bot")
    assert as_app(github)("GET", "/user").status == 403
    assert as_user(github, "alice").json("GET", "/user")["login"] == "alice"


def test_moving_the_world_does_not_age_a_jwt() -> None:
    """A client signs by its own clock, which knows nothing of the world's offset."""
    clock = HandClock()
    github: GitHub = make_world(clock)
    github.move_clock(86_400)
    assert as_app(github)("GET", "/installation/repositories").status == 200
    clock.move(1200)
    assert Api(github, app_jwt(START))("GET", "/app").status == 401
