"""May this caller make this request here? GitHub's answers where not."""

from __future__ import annotations

from sandbox.github.auth import Kind
from sandbox.github.call import Call, can_read, covers
from sandbox.github.routing import Route
from sandbox.github.wire import ApiError, not_found

NOT_ACCESSIBLE = "Resource not accessible by integration"
ARCHIVED = "Repository was archived so is read-only."


def check_access(call: Call, route: Route) -> None:
    """Raises ApiError: 401, 403 or 404. Roles of people are checked by the handlers."""
    reads = route.method == "GET" or route.reads
    if not route.in_repository or route.permission is None:
        if not reads and call.caller.kind is Kind.ANONYMOUS:
            raise ApiError(401, "Requires authentication")
        return
    if call.caller.kind is Kind.APP:
        raise ApiError(401, "Bad credentials")
    repository = call.repository
    if not can_read(call.world, call.caller, repository):
        raise not_found()
    if call.caller.kind is Kind.ANONYMOUS and not reads:
        raise ApiError(401, "Requires authentication")
    if call.caller.kind is Kind.INSTALLATION:
        _check_installation(call, route.permission, reads=reads)
    if repository.archived and not reads:
        raise ApiError(403, ARCHIVED)


def _check_installation(call: Call, permission: str, *, reads: bool) -> None:
    token = call.caller.token
    level = None if token is None else token.permissions.get(permission)
    if reads:
        may = not call.repository.private or permission == "metadata" or level is not None
    else:
        may = covers(call.caller, call.repository) and level == "write"
    if not may:
        raise ApiError(403, NOT_ACCESSIBLE)
