"""The repository and who may do what in it."""

from __future__ import annotations

from sandbox.github import clock
from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import accounts as account_shape
from sandbox.github.shapes import repositories as shape
from sandbox.github.state import Role
from sandbox.github.wire import ApiError, Respond, not_found, respond_json


def get_repository(call: Call) -> Respond:
    return respond_json(200, shape.full_repository(call.repository, call.base, call.role()))


def get_permission(call: Call) -> Respond:
    """What someone may do here; asking needs the right to push (an App: metadata)."""
    call.require_role(Role.WRITE, "Must have push access to view collaborator permission.")
    login = call.params["login"]
    account = call.world.accounts.get(login.lower())
    if account is None or account.type != "User":
        raise ApiError(404, f"{login} is not a user")
    role = call.world.role_of(account, call.repository)
    return respond_json(200, account_shape.collaborator_permission(account, role, call.base))


def list_commits(call: Call) -> Respond:
    """Newest first; `sha`, `path`, `since`, `until`."""
    repository = call.repository
    start = shape.find_commit(repository, call.query.get("sha", ""))
    if start is None:
        raise not_found()
    since, until, path = call.since(), call.query.get("until"), call.query.get("path")
    last = clock.stamp(clock.parse_stamp(until)) if until else None
    found = [
        each
        for each in repository.commits[: repository.commits.index(start) + 1]
        if (since is None or each.at >= since)
        and (last is None or each.at <= last)
        and (not path or any(f"{name}/".startswith(f"{path}/") for name in each.changed))
    ]
    return call.page(found[::-1], lambda each: shape.commit(each, repository, call.base))


def get_commit(call: Call) -> Respond:
    found = shape.find_commit(call.repository, call.params["ref"])
    if found is None:
        raise ApiError(422, f"No commit found for SHA: {call.params['ref']}")
    if "sha" in call.request.header("accept"):
        return Respond(200, {"content-type": "application/vnd.github.sha"}, found.sha.encode())
    return respond_json(200, shape.commit(found, call.repository, call.base, detailed=True))


def get_branch(call: Call) -> Respond:
    repository = call.repository
    if call.params["branch"] != repository.default_branch or not repository.commits:
        raise ApiError(404, "Branch not found")
    return respond_json(200, shape.branch(repository, repository.commits[-1], call.base))


ROUTES = [
    Route("GET", "", get_repository, "metadata", in_repository=True),
    Route(
        "GET", "collaborators/{login}/permission", get_permission, "metadata", in_repository=True
    ),
    Route("GET", "commits", list_commits, "contents", in_repository=True),
    Route("GET", "commits/{ref*}", get_commit, "contents", in_repository=True),
    Route("GET", "branches/{branch*}", get_branch, "contents", in_repository=True),
]
