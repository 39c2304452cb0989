"""Which handler a path belongs to. Every repository path works by name and by id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from sandbox.github.call import Call
from sandbox.github.state import Repository
from sandbox.github.views import View
from sandbox.github.wire import Respond
from sandbox.github.world import World

Handler = Callable[[Call], Respond]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    pattern: str  # /issues/{number}/comments; {path*} takes the rest
    handler: Handler
    permission: str | None = None  # what an App needs: contents, issues, metadata
    view: View | None = None
    in_repository: bool = False
    free: bool = False  # costs no rate limit
    reads: bool = False  # changes nothing, whatever its method


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `canonical` is the decoded path with the repository by name."""

    route: Route | None
    params: dict[str, str]
    canonical: str
    rest: str
    repository: Repository | None = None
    by_id: bool = False
    renamed: bool = False

    def view(self, query: dict[str, str]) -> View | None:
        view = None if self.route is None else self.route.view
        return View.ISSUES_BY_CREATOR if view is View.ISSUES and query.get("creator") else view


class Router:
    def __init__(self, routes: list[Route]) -> None:
        self._exact: dict[tuple[str, bool, int], list[tuple[list[str], Route]]] = {}
        self._open: list[tuple[list[str], Route]] = []
        for route in routes:
            parts = [part for part in route.pattern.split("/") if part]
            if parts and parts[-1].endswith("*}"):
                self._open.append((parts, route))
            else:
                key = (route.method, route.in_repository, len(parts))
                self._exact.setdefault(key, []).append((parts, route))

    def resolve(self, world: World, method: str, path: str) -> Target:
        segments = [part for part in path.split("/") if part]
        if segments[:2] == ["api", "v3"]:  # as an Enterprise Server is addressed
            segments = segments[2:]
        if segments[:1] == ["repos"] and len(segments) >= 3:
            return self._by_name(world, method, segments)
        if segments[:1] == ["repositories"] and len(segments) >= 2:
            return self._by_id(world, method, segments)
        route, params = self._match(method, False, segments)
        return Target(route, params, _decoded(segments), "/" + "/".join(segments))

    def _by_name(self, world: World, method: str, segments: list[str]) -> Target:
        name = f"{unquote(segments[1])}/{unquote(segments[2])}"
        found = world.repositories.get(world.names.get(name.lower(), -1))
        renamed = found is not None and found.full_name.lower() != name.lower()
        route, params = self._match(method, True, segments[3:])
        return Target(
            route, params, _decoded(segments), _rest(segments[3:]), found, renamed=renamed
        )

    def _by_id(self, world: World, method: str, segments: list[str]) -> Target:
        found = world.repositories.get(int(segments[1])) if segments[1].isdigit() else None
        route, params = self._match(method, True, segments[2:])
        canonical = _decoded(segments)
        if found is not None:
            canonical = f"/repos/{found.full_name}" + _decoded(segments[2:]).rstrip("/")
        return Target(route, params, canonical, _rest(segments[2:]), found, by_id=True)

    def _match(
        self, method: str, in_repository: bool, segments: list[str]
    ) -> tuple[Route | None, dict[str, str]]:
        for parts, route in self._exact.get((method, in_repository, len(segments)), ()):
            params = _fit(parts, segments)
            if params is not None:
                return route, params
        for parts, route in self._open:
            if route.method != method or route.in_repository is not in_repository:
                continue
            head = parts[:-1]
            if segments[: len(head)] == head:
                tail = "/".join(unquote(each) for each in segments[len(head) :])
                return route, {parts[-1][1:-2]: tail}
        return None, {}


def _fit(parts: list[str], segments: list[str]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for part, segment in zip(parts, segments, strict=True):
        if part[0] == "{":
            params[part[1:-1]] = unquote(segment)
        elif part != segment:
            return None
    return params


def _decoded(segments: list[str]) -> str:
    return "/" + "/".join(unquote(each) for each in segments)


def _rest(segments: list[str]) -> str:
    return "".join(f"/{each}" for each in segments)
