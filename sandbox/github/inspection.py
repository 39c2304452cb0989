"""What tests and demos ask the world: people to act, Apps to install, the state to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from sandbox.github import deeds
from sandbox.github.deeds import Doer
from sandbox.github.happenings import Happening
from sandbox.github.people import Person
from sandbox.github.seen import SeenComment, SeenIssue, seen_comment, seen_issue, whole_state
from sandbox.github.state import Hook, Installation
from sandbox.github.wire import Json
from sandbox.github.world import World

if TYPE_CHECKING:
    from sandbox.github.requests import Logged, RequestLog


class Row(Protocol):
    """A line of the issues CSV, as `sandbox.issues_csv` reads it."""

    @property
    def repo(self) -> str: ...
    @property
    def created_at(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def body(self) -> str: ...


AUTHORS = tuple(
    "ada bruno chen dalia emeka fumiko goran hana ivo jamila kofi lena mateo nia omar".split()
)


class Inspection(World):
    """The part of the GitHub that is for tests: none of it goes over HTTP."""

    log: RequestLog

    # Acting

    def as_user(self, login: str) -> Person:
        """This user acts (made if unknown); nobody asks for permission."""
        with self.lock:
            return Person(self, Doer(self.add_user(login)))

    def as_app(self, slug: str) -> Person:
        """The App's bot acts."""
        found = self.app(slug)
        return Person(self, Doer(found.bot, found))

    def add_issue(
        self,
        repo: str,
        title: str,
        body: str | None = None,
        *,
        author: str = "ada",
        labels: Iterable[str] = (),
        created_at: str | None = None,
        pull_request: bool = False,
    ) -> int:
        """Opens an issue and gives its number."""
        return self.as_user(author).open_issue(
            repo,
            title,
            body,
            labels=tuple(labels),
            created_at=created_at,
            pull_request=pull_request,
        )

    def fill(self, rows: Iterable[Row], *, authors: tuple[str, ...] = AUTHORS) -> list[int]:
        """Opens an unlabelled issue for each row, by varied authors, in the repository it names
        (made if unknown). Gives the numbers; the rows' labels are the truth and stay outside.
        """
        numbers = []
        for index, row in enumerate(rows):
            if row.repo.lower() not in self.names:
                self.add_repository(row.repo)
            numbers.append(
                self.add_issue(
                    row.repo,
                    row.title,
                    row.body,
                    author=authors[index % len(authors)],
                    created_at=row.created_at or None,
                )
            )
        return numbers

    # Installations

    def install(
        self,
        app: str,
        account: str,
        repositories: Iterable[str] | None = None,
        *,
        id: int | None = None,
        permissions: Mapping[str, str] | None = None,
    ) -> int:
        """Installs the App (by slug) on an account, on these repositories (by full name) or on
        all; gives the installation's id.
        """
        with self.lock:
            subject, at = self.app(app), self.now_stamp()
            chosen = None if repositories is None else [self.repository(r) for r in repositories]
            made = Installation(
                id=self.next_id("installation") if id is None else id,
                app=subject,
                account=self.add_user(account),
                repository_ids=None if chosen is None else {each.id for each in chosen},
                permissions=dict(subject.permissions if permissions is None else permissions),
                events=list(subject.events),
                created_at=at,
                updated_at=at,
            )
            self.installations[made.id] = made
            self._tell_installation("created", made)
            return made.id

    def suspend(self, installation: int, *, by: str = "sandbox-owner") -> None:
        with self.lock:
            found = self.installations[installation]
            found.suspended_at, found.suspended_by = self.now_stamp(), self.add_user(by)
            self._tell_installation("suspend", found)

    def unsuspend(self, installation: int) -> None:
        with self.lock:
            found = self.installations[installation]
            found.suspended_at = found.suspended_by = None
            self._tell_installation("unsuspend", found)

    def uninstall(self, installation: int) -> None:
        with self.lock:
            found = self.installations[installation]
            self._tell_installation("deleted", found)
            found.deleted = True

    def cover(
        self, installation: int, *, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> None:
        """Changes the chosen repositories of an installation."""
        with self.lock:
            found = self.installations[installation]
            added = tuple(self.repository(each) for each in add)
            removed = tuple(self.repository(each) for each in remove)
            if found.repository_ids is None:
                raise ValueError("this installation covers all repositories of its account")
            found.repository_ids |= {each.id for each in added}
            found.repository_ids -= {each.id for each in removed}
            for action, changed in (("added", added), ("removed", removed)):
                if changed:
                    self.tell(
                        Happening(
                            "installation_repositories",
                            action,
                            found.account,
                            installation=found,
                            repositories=changed,
                        )
                    )

    def set_hook(self, app: str, url: str, secret: str, events: Iterable[str] = ("*",)) -> None:
        """Where the App's webhooks go from now on."""
        with self.lock:
            self.app(app).hook = Hook(url, secret, tuple(events))

    def _tell_installation(self, action: str, subject: Installation) -> None:
        covered = tuple(each for each in self.repositories.values() if subject.covers(each))
        self.tell(
            Happening(
                "installation",
                action,
                subject.account,
                installation=subject,
                repositories=covered,
            )
        )

    # Looking

    def issues(self, repo: str, *, state: str = "all") -> list[SeenIssue]:
        """Those that are there, by number."""
        self.catch_up()
        with self.lock:
            found = [
                seen_issue(issue, now)
                for issue in self.repository(repo).issues.values()
                if (now := issue.history.latest) is not None
            ]
        return [each for each in found if state in ("all", each.state)]

    def issue(self, repo: str, number: int) -> SeenIssue:
        """Raises LookupError if it is not there."""
        self.catch_up()
        with self.lock:
            found = self.repository(repo).issues[number]
            return seen_issue(found, deeds.current(found))

    def comments(self, repo: str, number: int) -> list[SeenComment]:
        """Those that are there, oldest first."""
        self.catch_up()
        with self.lock:
            return [
                seen_comment(comment)
                for comment in self.repository(repo).comments_of[number]
                if comment.history.latest is not None
            ]

    def labels(self, repo: str, number: int) -> list[str]:
        return list(self.issue(repo, number).labels)

    def events(self, repo: str, number: int) -> list[tuple[str, str]]:
        """(`labeled`, who) and so on, oldest first."""
        self.catch_up()
        with self.lock:
            found = self.repository(repo).events_of[number]
            return [(each.event, each.actor.login) for each in found]

    def requests(
        self, method: str | None = None, path: str | None = None, *, applied: bool | None = None
    ) -> list[Logged]:
        """The log so far; `path` is a part of the canonical path."""
        self.catch_up()
        with self.lock:
            return [
                each
                for each in self.log.entries
                if (method is None or each.method == method)
                and (path is None or path in each.canonical)
                and (applied is None or each.applied is applied)
            ]

    def state(self) -> Json:
        """All of it, as plain JSON."""
        self.catch_up()
        with self.lock:
            return whole_state(self)
