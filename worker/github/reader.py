"""Reads from GitHub as ``worker.ports`` wants them: uncached, and what is gone is a value.

Invariant: once a repository's id is known it is addressed by it, so a rename does not bite.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from triage.policy import ROLES, PolicyDocument, PolicyError, Problem
from triage.snapshot import Issue
from worker.github.auth import AS_APP, AS_NOBODY, TOKEN_INSTALLATION, Authority
from worker.github.reads import Reads
from worker.github.shapes import (
    AccountShape,
    AppShape,
    BranchShape,
    CommentShape,
    EventShape,
    FileShape,
    InstallationShape,
    IssueShape,
    LabelShape,
    PermissionShape,
    RepositoryShape,
)
from worker.policy_file import LARGEST_BYTES, parse_policy
from worker.ports import Comment, Gone, IssueEvent, Place, ReadFailed, RepositoryNow

POLICY_PATH: Final = ".github/retriage.yml"

_FULL_NAME = re.compile(r"(?!\.)[\w.-]{1,100}/(?!\.\.?$)[\w.-]{1,100}", re.ASCII)
_LOGIN = re.compile(r"[\w-]{1,100}(\[bot\])?", re.ASCII)
_CREATED_ASCENDING: Final = {"sort": "created", "direction": "asc"}
"""By ``updated`` a list drifts while it is paged."""


class RestReader:
    """``worker.ports.GitHubReader`` over GitHub's REST API."""

    def __init__(self, reads: Reads, authority: Authority, *, bot_id: int | None = None) -> None:
        """``bot_id``: the account that a token, there being no App, is said to belong to."""
        self._reads = reads
        self._authority = authority
        self._bot_id = bot_id
        self._bot: AccountShape | None = None

    async def bot_user_id(self) -> int:
        """The user id under which the bot writes; asked once."""
        return (await self._account()).id

    async def bot_login(self) -> str:
        """The login under which the bot writes; asked once."""
        return (await self._account()).login

    async def repository(self, full_name: str) -> RepositoryNow | Gone:
        """Look a repository up by name (redirects followed), with its installation."""
        if not _FULL_NAME.fullmatch(full_name):
            return Gone.NOT_FOUND
        installation = TOKEN_INSTALLATION
        if self._authority.is_app:
            found = await self._reads.find(
                InstallationShape, f"repos/{full_name}/installation", AS_APP, follow=True
            )
            if isinstance(found, Gone):
                return found
            installation = str(found.id)
        shape = await self._reads.find(
            RepositoryShape, f"repos/{full_name}", installation, follow=True
        )
        return shape if isinstance(shape, Gone) else shape.now(installation)

    async def repository_by_id(self, place: Place) -> RepositoryNow | Gone:
        """Look it up by id."""
        shape = await self._reads.find(
            RepositoryShape, f"repositories/{place.id}", place.installation
        )
        return shape if isinstance(shape, Gone) else shape.now(place.installation)

    async def installations(self) -> list[str]:
        """The App's installations that are not suspended; none where there is no App."""
        if not self._authority.is_app:
            return []
        shapes = await self._reads.all(InstallationShape, "app/installations", AS_APP)
        return [str(shape.id) for shape in shapes if shape.suspended_at is None]

    async def installation_repositories(self, installation: str) -> list[Place]:
        """The repositories of one installation; none where there is no App."""
        if not self._authority.is_app:
            return []
        shapes = await self._reads.all(
            RepositoryShape, "installation/repositories", installation, within="repositories"
        )
        return [shape.place(installation) for shape in shapes]

    async def policy(self, place: Place) -> tuple[PolicyDocument | None, PolicyDocument | None]:
        """The organisation's default and the repository's file.

        Raises PolicyError where a file is not YAML at all.
        """
        owner, _, name = place.full_name.partition("/")
        own = await self._policy_at(f"repositories/{place.id}", place.installation)
        if name.lower() == ".github" or not _LOGIN.fullmatch(owner):
            return None, own
        try:
            shared = await self._policy_at(f"repos/{owner}/.github", place.installation)
        except PolicyError as error:
            source = f"in {owner}/.github: "
            raise PolicyError(
                [replace(item, message=source + item.message) for item in error.problems]
            ) from error
        return shared, own

    async def labels(self, place: Place) -> frozenset[str]:
        """The names of the labels that the repository has now."""
        shapes = await self._reads.all(LabelShape, _at(place, "labels"), place.installation)
        return frozenset(shape.name for shape in shapes)

    async def head_commit(self, place: Place, branch: str) -> str:
        """The commit at the head of a branch; empty where the repository is empty."""
        if not branch:
            return ""
        path = _at(place, f"branches/{quote(branch, safe='')}")
        shape = await self._reads.find(BranchShape, path, place.installation)
        return "" if isinstance(shape, Gone) else shape.commit.sha

    async def issues(
        self,
        place: Place,
        *,
        state: str = "open",
        since: datetime | None = None,
        creator: str | None = None,
    ) -> list[Issue]:
        """The listing, oldest first, all pages; pull requests are marked as such."""
        query = {"state": state, **_CREATED_ASCENDING}
        if since is not None:
            query["since"] = _stamp(since)
        if creator is not None:
            query["creator"] = creator
        shapes = await self._reads.all(IssueShape, _at(place, "issues"), place.installation, query)
        return [shape.value() for shape in shapes]

    async def issue(self, place: Place, number: int) -> Issue | Gone:
        """One issue."""
        shape = await self._reads.find(
            IssueShape, _at(place, f"issues/{number}"), place.installation
        )
        return shape if isinstance(shape, Gone) else shape.value()

    async def comments(self, place: Place, since: datetime) -> list[Comment]:
        """The repository's comments updated since."""
        query = {"since": _stamp(since), **_CREATED_ASCENDING}
        path = _at(place, "issues/comments")
        shapes = await self._reads.all(CommentShape, path, place.installation, query)
        return [shape.value() for shape in shapes]

    async def issue_comments(self, place: Place, number: int) -> list[Comment] | Gone:
        """One issue's comments, all of them."""
        path = _at(place, f"issues/{number}/comments")
        shapes = await self._reads.pages(CommentShape, path, place.installation)
        if isinstance(shapes, Gone):
            return shapes
        return [shape.value(number) for shape in shapes]

    async def comment(self, place: Place, comment_id: int) -> Comment | Gone:
        """One comment."""
        path = _at(place, f"issues/comments/{comment_id}")
        shape = await self._reads.find(CommentShape, path, place.installation)
        return shape if isinstance(shape, Gone) else shape.value()

    async def issue_events(self, place: Place, number: int) -> list[IssueEvent]:
        """One issue's events, oldest first; none where the issue is gone."""
        path = _at(place, f"issues/{number}/events")
        shapes = await self._reads.pages(EventShape, path, place.installation)
        return [] if isinstance(shapes, Gone) else [shape.value(number) for shape in shapes]

    async def role(self, place: Place, login: str) -> str:
        """A user's role name on the repository: none, read, triage, write, maintain, admin."""
        if not _LOGIN.fullmatch(login):
            return "none"
        path = _at(place, f"collaborators/{quote(login, safe='')}/permission")
        shape = await self._reads.find(PermissionShape, path, place.installation)
        if isinstance(shape, Gone):
            return "none"
        # A custom role has a name of its own; the older word then says what it is built on.
        return next((word for word in (shape.role_name, shape.permission) if word in ROLES), "none")

    async def _account(self) -> AccountShape:
        if self._bot is None:
            own = self._app_account if self._authority.is_app else self._token_account
            self._bot = await own()
        return self._bot

    async def _app_account(self) -> AccountShape:
        app = await self._reads.one(AppShape, "app", AS_APP)
        path = f"users/{quote(f'{app.slug}[bot]', safe='')}"
        return await self._reads.one(AccountShape, path, await self._any_asker())

    async def _token_account(self) -> AccountShape:
        try:
            account = await self._reads.one(AccountShape, "user", TOKEN_INSTALLATION)
        except ReadFailed as failure:
            if not failure.permanent:
                raise
            return await self._account_by_id(failure)
        if self._bot_id not in (None, account.id):
            detail = f"RETRIAGE_BOT_ID is {self._bot_id}, but the token is of {account.id}"
            raise ReadFailed(detail, permanent=True)
        return account

    async def _account_by_id(self, failure: ReadFailed) -> AccountShape:
        """A workflow's token may not ask whose it is."""
        if self._bot_id is None:
            detail = f"{failure.detail}; RETRIAGE_BOT_ID can name the token's account"
            raise ReadFailed(detail, permanent=True) from failure
        return await self._reads.one(AccountShape, f"user/{self._bot_id}", TOKEN_INSTALLATION)

    async def _any_asker(self) -> str:
        """Who may look up a user: the App itself may not."""
        known = self._authority.any_installation()
        return known or next(iter(await self.installations()), AS_NOBODY)

    async def _policy_at(self, base: str, installation: str) -> PolicyDocument | None:
        path = f"{base}/contents/{POLICY_PATH}"
        shape = await self._reads.find(FileShape, path, installation, follow=True)
        if isinstance(shape, Gone):
            return None
        data = shape.data()
        if data is None:
            large = shape.size > LARGEST_BYTES
            message = f"larger than {LARGEST_BYTES // 1024} KiB" if large else "not a plain file"
            raise PolicyError([Problem(None, "", f"{POLICY_PATH} is {message}")])
        return parse_policy(data)


def _at(place: Place, path: str) -> str:
    return f"repositories/{place.id}/{path}"


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
