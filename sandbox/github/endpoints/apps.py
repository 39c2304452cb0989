"""The App itself, its installations and their tokens."""

from __future__ import annotations

from datetime import timedelta

from sandbox.github.auth import UNDECODABLE, Kind
from sandbox.github.call import Call, covers
from sandbox.github.clock import stamp
from sandbox.github.routing import Route
from sandbox.github.shapes import accounts as shape
from sandbox.github.shapes.repositories import repository as repository_json
from sandbox.github.state import App, Installation, Repository, Token
from sandbox.github.wire import ApiError, Respond, not_found, respond_json

TOKEN_LIFETIME = timedelta(hours=1)


def get_app(call: Call) -> Respond:
    app = _app(call)
    count = sum(1 for each in _installations(call, app))
    return respond_json(200, {**shape.app(app, call.base), "installations_count": count})


def list_installations(call: Call) -> Respond:
    return call.page(
        _installations(call, _app(call)), lambda each: shape.installation(each, call.base)
    )


def get_installation(call: Call) -> Respond:
    return respond_json(200, shape.installation(_installation(call), call.base))


def create_token(call: Call) -> Respond:
    """A token for an hour of the sandbox's time, narrowed as asked for."""
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise ApiError(403, "This installation has been suspended")
    wishes = call.json()
    permissions = _narrowed_permissions(installation, wishes.get("permissions"))
    repositories = _narrowed_repositories(call, installation, wishes)
    expires = call.world.clock.now() + TOKEN_LIFETIME
    token = Token(
        value="ghs_" + f"{call.world.random.getrandbits(180):045x}"[:36],
        account=installation.app.bot,
        installation=installation,
        expires_at=expires,
        permissions=permissions,
        repository_ids=installation.repository_ids
        if repositories is None
        else {each.id for each in repositories},
    )
    call.world.tokens[token.value] = token
    shown = (
        None
        if repositories is None
        else [repository_json(each, call.base) for each in repositories]
    )
    return respond_json(201, shape.token(token, stamp(expires), shown))


def _narrowed_permissions(installation: Installation, wished: object) -> dict[str, str]:
    if not isinstance(wished, dict):
        return dict(installation.permissions)
    granted = installation.permissions
    for name, level in wished.items():
        has = granted.get(name)
        if has is None or (level == "write" and has != "write"):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    return {"metadata": "read", **wished}


def _narrowed_repositories(
    call: Call, installation: Installation, wishes: dict[str, object]
) -> list[Repository] | None:
    ids, names = wishes.get("repository_ids"), wishes.get("repositories")
    if not isinstance(ids, list) and not isinstance(names, list):
        return None
    covered = [each for each in call.world.repositories.values() if installation.covers(each)]
    chosen = [
        each
        for each in covered
        if (isinstance(ids, list) and each.id in ids)
        or (isinstance(names, list) and each.name in names)
    ]
    asked = len(ids if isinstance(ids, list) else []) + len(
        names if isinstance(names, list) else []
    )
    if len(chosen) < asked:
        raise ApiError(
            422,
            "There is at least one repository that does not exist or is not accessible to the "
            "parent installation.",
        )
    return chosen


def revoke_token(call: Call) -> Respond:
    token = call.caller.token
    if call.caller.kind is not Kind.INSTALLATION or token is None:
        raise ApiError(403, "Resource not accessible by integration")
    del call.world.tokens[token.value]
    return Respond(204)


def get_repository_installation(call: Call) -> Respond:
    found = call.world.installation_on(_app(call), call.repository)
    if found is None or found.deleted:
        raise not_found()
    return respond_json(200, shape.installation(found, call.base))


def get_account_installation(call: Call) -> Respond:
    app = _app(call)
    for each in _installations(call, app):
        if each.account.login.lower() == call.params["login"].lower():
            return respond_json(200, shape.installation(each, call.base))
    raise not_found()


def list_repositories(call: Call) -> Respond:
    """What the installation's token reaches."""
    token = call.caller.token
    if call.caller.kind is not Kind.INSTALLATION or token is None:
        raise ApiError(403, "You must authenticate with an installation access token")
    reached = [each for each in call.world.repositories.values() if covers(call.caller, each)]
    return call.page(
        reached,
        lambda each: repository_json(each, call.base),
        wrap=lambda shown: {
            "total_count": len(reached),
            "repository_selection": "all" if token.repository_ids is None else "selected",
            "repositories": shown,
        },
    )


def _app(call: Call) -> App:
    if call.caller.app is None or call.caller.kind is not Kind.APP:
        raise ApiError(401, UNDECODABLE)
    return call.caller.app


def _installations(call: Call, app: App) -> list[Installation]:
    return [
        each for each in call.world.installations.values() if each.app is app and not each.deleted
    ]


def _installation(call: Call) -> Installation:
    app = _app(call)
    found = call.world.installations.get(call.number("id"))
    if found is None or found.app is not app or found.deleted:
        raise not_found()
    return found


ROUTES = [
    Route("GET", "/app", get_app, free=True),
    Route("GET", "/app/installations", list_installations, free=True),
    Route("GET", "/app/installations/{id}", get_installation, free=True),
    Route("POST", "/app/installations/{id}/access_tokens", create_token, free=True),
    Route("DELETE", "/installation/token", revoke_token, free=True),
    Route("GET", "/installation/repositories", list_repositories),
    Route("GET", "/orgs/{login}/installation", get_account_installation, free=True),
    Route("GET", "/users/{login}/installation", get_account_installation, free=True),
    Route("GET", "installation", get_repository_installation, in_repository=True, free=True),
]
