"""Users, the asker, and the limits."""

from __future__ import annotations

from sandbox.github.auth import Kind
from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import accounts as shape
from sandbox.github.state import Account
from sandbox.github.wire import ApiError, Respond, not_found, respond_json


def get_root(call: Call) -> Respond:
    base = call.base
    return respond_json(
        200,
        {
            "current_user_url": f"{base}/user",
            "rate_limit_url": f"{base}/rate_limit",
            "repository_url": f"{base}/repos/{{owner}}/{{repo}}",
            "user_url": f"{base}/users/{{user}}",
        },
    )


def get_user(call: Call) -> Respond:
    account = call.world.accounts.get(call.params["login"].lower())
    if account is None:
        raise not_found()
    return respond_json(
        200, shape.profile(account, call.base, public_repos=_public_repositories(call, account))
    )


def get_authenticated(call: Call) -> Respond:
    account = call.caller.account
    if call.caller.kind is Kind.ANONYMOUS:
        raise ApiError(401, "Requires authentication")
    if call.caller.kind is not Kind.USER or account is None:
        raise ApiError(403, "Resource not accessible by integration")
    count = _public_repositories(call, account)
    return respond_json(200, shape.private_profile(account, call.base, public_repos=count))


def get_rate_limit(call: Call) -> Respond:
    core = call.limits.told(call.caller.limit_key, call.world.clock.now())
    other = {**core, "limit": 30, "remaining": 30, "used": 0}
    resources = {
        "core": core,
        "search": {**other, "resource": "search"},
        "graphql": {**other, "resource": "graphql", "limit": 5000, "remaining": 5000},
    }
    return respond_json(200, {"resources": resources, "rate": core})


def _public_repositories(call: Call, account: Account) -> int:
    return sum(
        1 for each in call.world.repositories.values() if each.owner is account and not each.private
    )


ROUTES = [
    Route("GET", "/", get_root, free=True),
    Route("GET", "/users/{login}", get_user),
    Route("GET", "/user", get_authenticated),
    Route("GET", "/rate_limit", get_rate_limit, free=True),
]
