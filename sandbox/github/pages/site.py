"""Plain HTML pages, so that a person can look at the issues. No JavaScript; all is escaped."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, Template

from sandbox.github.core import GitHub
from sandbox.github.pages.markdown import render
from sandbox.github.state import Comment, Issue, Label, Repository
from sandbox.github.wire import Request, Respond

_PAGE = re.compile(r"/([^/]+)/([^/]+)(?:/(issues|pull)(?:/(\d+))?)?/?")
_API = frozenset(
    "api app apps graphql installation orgs rate_limit repos repositories search settings user "
    "users".split()
)
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'",
}


def page(github: GitHub, request: Request) -> Respond | None:
    """The page of that address; None if it is none of ours, but the API's."""
    if request.method != "GET":
        return None
    if request.path == "/" and "text/html" in request.header("accept"):
        with github.lock:
            return _render("home.html", repositories=list(github.repositories.values()))
    match = _PAGE.fullmatch(request.path)
    if match is None or match[1] in _API:
        return None
    with github.lock:
        repository = github.repositories.get(github.names.get(f"{match[1]}/{match[2]}".lower(), -1))
        if repository is None:
            return _render("missing.html", 404, what=f"{match[1]}/{match[2]}")
        if match[4] is None:
            return _list(repository, request.parameters().get("state", "open"))
        return _issue(repository, int(match[4]))


def ink(label: Label) -> str:
    """Black or white, whichever can be read on the label's color."""
    try:
        red, green, blue = (int(label.color[i : i + 2], 16) for i in (0, 2, 4))
    except ValueError:
        return "#000"
    return "#000" if 299 * red + 587 * green + 114 * blue > 140_000 else "#fff"


def paint(label: Label) -> str:
    """The label's color, if it is one."""
    return f"#{label.color}" if re.fullmatch(r"[0-9a-fA-F]{6}", label.color) else "#ededed"


def _list(repository: Repository, state: str) -> Respond:
    found = [
        (issue, now)
        for issue in sorted(repository.issues.values(), key=lambda each: -each.number)
        if (now := issue.history.latest) is not None and state in ("all", now.state)
    ]
    return _render("issues.html", repository=repository, issues=found, state=state)


def _issue(repository: Repository, number: int) -> Respond:
    issue = repository.issues.get(number)
    state = None if issue is None else issue.history.latest
    if issue is None or state is None:
        return _gone(repository, number, issue)
    comments = [
        (each, now)
        for each in repository.comments_of[number]
        if (now := each.history.latest) is not None
    ]
    return _render(
        "issue.html",
        repository=repository,
        issue=issue,
        state=state,
        comments=comments,
        events=repository.events_of[number],
    )


def _gone(repository: Repository, number: int, issue: Issue | None) -> Respond:
    if issue is not None and issue.moved_to is not None:
        to = issue.moved_to
        location = f"/{to.repository.full_name}/issues/{to.number}"
        return Respond(301, {"location": location})
    return _render(
        "missing.html", 404 if issue is None else 410, what=f"{repository.full_name}#{number}"
    )


def reactions_of(subject: Issue | Comment) -> list[tuple[str, int]]:
    """Each reaction with how often it was given."""
    counts: dict[str, int] = {}
    for each in subject.reactions:
        counts[each.content] = counts.get(each.content, 0) + 1
    return [(_FACES.get(content, content), count) for content, count in counts.items()]


_FACES = {
    "+1": "👍",
    "-1": "👎",
    "laugh": "😄",
    "hooray": "🎉",
    "confused": "😕",
    "heart": "❤️",
    "rocket": "🚀",
    "eyes": "👀",
}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(markdown=render, ink=ink, paint=paint, reactions=reactions_of)
    return environment


def _render(name: str, status: int = 200, **values: object) -> Respond:
    template: Template = _environment().get_template(name)
    return Respond(status, HEADERS, template.render(**values).encode(errors="replace"))
