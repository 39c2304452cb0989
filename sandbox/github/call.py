"""One request on its way through the API: what handlers get, and how they look things up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar
from urllib.parse import quote, urlencode

from sandbox.github.auth import Caller, Kind
from sandbox.github.clock import parse_stamp, stamp
from sandbox.github.deeds import Doer
from sandbox.github.history import FRESH, Sight
from sandbox.github.limits import Limits
from sandbox.github.state import Comment, CommentState, Issue, IssueState, Repository, Role
from sandbox.github.wire import ApiError, Json, Request, Respond, not_found, respond_json
from sandbox.github.world import World

Item = TypeVar("Item")
DEFAULT_PAGE = 30
LARGEST_PAGE = 100


@dataclass(slots=True)
class Call:
    world: World
    limits: Limits
    request: Request
    caller: Caller
    params: dict[str, str]
    query: dict[str, str]
    rest: str  # the path under the repository, still percent-encoded; the whole path elsewhere
    found_repository: Repository | None = None
    sight: Sight = field(default=FRESH)
    suggest_labels: bool = False

    @property
    def base(self) -> str:
        return self.world.base_url

    @property
    def repository(self) -> Repository:
        if self.found_repository is None:
            raise not_found()
        return self.found_repository

    @property
    def doer(self) -> Doer:
        return self.caller.doer

    # The request

    def number(self, name: str) -> int:
        text = self.params[name]
        if not text.isascii() or not text.isdigit():
            raise not_found()
        return int(text)

    def json(self) -> Json:
        """The body as an object. Raises ApiError as GitHub does for what is none."""
        if not self.request.body:
            return {}
        content = self.any_json()
        if not isinstance(content, dict):
            raise ApiError(400, "Body should be a JSON object")
        return content

    def any_json(self) -> object:
        try:
            return json.loads(self.request.body)
        except ValueError:
            raise ApiError(400, "Problems parsing JSON") from None

    def since(self) -> str | None:
        """`?since=` as a stamp: what was updated at or after it is meant."""
        text = self.query.get("since")
        if not text:
            return None
        try:
            moment = parse_stamp(text)
        except ValueError:
            raise ApiError(422, f"Invalid since: {text}") from None
        if moment.microsecond:
            moment = moment.replace(microsecond=0) + timedelta(seconds=1)
        return stamp(moment)

    # The answer

    def page(
        self,
        items: Sequence[Item],
        shape: Callable[[Item], Json],
        *,
        wrap: Callable[[list[Json]], object] | None = None,
    ) -> Respond:
        """One page of it, with a `Link` header as GitHub's."""
        size = min(LARGEST_PAGE, max(1, self._positive("per_page", DEFAULT_PAGE)))
        number = max(1, self._positive("page", 1))
        last = max(1, -(-len(items) // size))
        shown = [shape(each) for each in items[(number - 1) * size : number * size]]
        links = []
        if number > 1:
            links.append(self._link("prev", min(number - 1, last)))
        if number < last:
            links.extend((self._link("next", number + 1), self._link("last", last)))
        if number > 1:
            links.append(self._link("first", 1))
        headers = {"link": ", ".join(links)} if links else {}
        return respond_json(200, wrap(shown) if wrap else shown, headers)

    def _positive(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else default

    def _link(self, relation: str, page: int) -> str:
        return f'<{self.url(**{**self.query, "page": str(page)})}>; rel="{relation}"'

    def url(self, **query: str) -> str:
        """This request's address in the form GitHub uses in links: by repository id."""
        if self.found_repository is None:
            path = self.request.path
        else:
            path = f"/repositories/{self.found_repository.id}{self.rest}"
        return f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")

    # Looking up

    def seen_issue(self) -> tuple[Issue, IssueState]:
        """The issue as this read sees it, which may be late."""
        return self.issue(self.sight)

    def issue(self, sight: Sight = FRESH) -> tuple[Issue, IssueState]:
        """The issue as it is. Raises 404, 410 (deleted) or 301 (transferred)."""
        issue = self.repository.issues.get(self.number("number"))
        if issue is None:
            raise not_found()
        state = sight.see(issue.history)
        if state is not None:
            return issue, state
        if issue.moved_to is not None:
            raise self._moved_issue(issue.moved_to)
        if issue.history.latest is None:
            raise ApiError(410, "This issue was deleted")
        raise not_found()

    def _moved_issue(self, target: Issue) -> ApiError:
        while target.moved_to is not None:
            target = target.moved_to
        if not can_read(self.world, self.caller, target.repository):
            return not_found()
        tail = self.rest.removeprefix(f"/issues/{self.params['number']}")
        return redirect(self, f"/repositories/{target.repository.id}/issues/{target.number}{tail}")

    def comment(self) -> tuple[Comment, CommentState]:
        comment = self.repository.comments.get(self.number("id"))
        state = None if comment is None else self.sight.see(comment.history)
        if comment is None or state is None:
            raise not_found()
        return comment, state

    def require_role(
        self, role: Role, message: str = "Must have admin rights to Repository."
    ) -> None:
        """For people; Apps go by their permissions, which were checked before."""
        if not self.has_role(role):
            raise ApiError(403, message)

    def has_role(self, role: Role) -> bool:
        if self.caller.kind is not Kind.USER or self.caller.account is None:
            return self.caller.kind is Kind.INSTALLATION
        return self.world.role_of(self.caller.account, self.repository) >= role

    def role(self) -> Role | None:
        """What the answer says about the asker's own permissions."""
        if self.caller.kind is Kind.USER and self.caller.account is not None:
            return self.world.role_of(self.caller.account, self.repository)
        return None


def redirect(call: Call, path: str) -> ApiError:
    """301 to an address of this server, with the query kept, whatever the method."""
    query = f"?{urlencode(call.query)}" if call.query else ""
    location = f"{call.base}{quote(path, safe='/%')}{query}"
    return ApiError(
        301, "Moved Permanently", headers={"location": location}, extra={"url": location}
    )


def can_read(world: World, caller: Caller, repository: Repository) -> bool:
    if not repository.private:
        return True
    if caller.kind is Kind.USER and caller.account is not None:
        return world.role_of(caller.account, repository) >= Role.READ
    return covers(caller, repository)


def covers(caller: Caller, repository: Repository) -> bool:
    """Whether the caller's installation and token reach this repository."""
    installation, token = caller.installation, caller.token
    if installation is None or token is None or not installation.covers(repository):
        return False
    return token.repository_ids is None or repository.id in token.repository_ids
