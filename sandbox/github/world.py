"""The world behind the API: accounts, Apps, installations, repositories, tokens.

`World` finds and makes things. What *happens* in it (comments, labels, …) is in `deeds`.
Every public method takes the lock, so tests may build while a server answers.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from random import Random

from sandbox.github.clock import Clock, real_now, stamp
from sandbox.github.git_objects import Entry, Tree, commit_object
from sandbox.github.git_store import GitStore, entries_of, signature
from sandbox.github.happenings import Happening
from sandbox.github.keys import new_private_key, public_key_of
from sandbox.github.state import (
    Account,
    App,
    Commit,
    Hook,
    Installation,
    Label,
    Repository,
    Role,
    Token,
)

APP_PERMISSIONS: Mapping[str, str] = {
    "contents": "read",
    "issues": "write",
    "metadata": "read",
}
APP_EVENTS: Sequence[str] = ("issues", "issue_comment", "label", "repository")
DEFAULT_LABELS: Sequence[tuple[str, str, str]] = (
    ("bug", "d73a4a", "Something isn't working"),
    ("enhancement", "a2eeef", "New feature or request"),
    ("question", "d876e3", "Further information is requested"),
)
DEFAULT_LABEL_NAMES = frozenset(
    "bug documentation duplicate enhancement invalid question wontfix".split()
)
LABEL_COLOR_WHEN_MADE_IN_PASSING = "ededed"


class World:
    """State without HTTP."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = real_now,
        signers_now: Callable[[], datetime] | None = None,
        base_url: str = "http://127.0.0.1",
        seed: int | None = None,
    ) -> None:
        self.clock = Clock(now)
        self.signers_now = signers_now or now
        self.lock = threading.RLock()
        self.random = Random(seed) if seed is not None else Random()
        self.accounts: dict[str, Account] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[int, Repository] = {}
        self.names: dict[str, int] = {}  # full name in lower case, also former ones -> id
        self.tokens: dict[str, Token] = {}
        self.git = GitStore()
        self._ids = {
            kind: itertools.count(first)
            for kind, first in (
                ("account", 9_000_001),
                ("app", 700_001),
                ("installation", 50_000_001),
                ("repository", 800_000_001),
                ("issue", 2_500_000_001),
                ("comment", 2_900_000_001),
                ("label", 6_000_000_001),
                ("event", 12_000_000_001),
                ("reaction", 250_000_001),
            )
        }
        self.listeners: list[Callable[[Happening], None]] = []
        self.base_url = base_url  # without a slash at the end

    def catch_up(self) -> None:
        """Whatever was to happen by now happens (there is nothing in a bare world)."""

    def next_id(self, kind: str) -> int:
        return next(self._ids[kind])

    def new_guid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def now_stamp(self) -> str:
        return stamp(self.clock.now())

    def tell(self, happening: Happening) -> None:
        for listener in self.listeners:
            listener(happening)

    # Finding

    def account(self, login: str) -> Account:
        """The account; raises KeyError, naming it."""
        return self.accounts[login.lower()]

    def repository(self, repo: str | int) -> Repository:
        """By full name (a former one too) or id; raises KeyError, naming it."""
        if isinstance(repo, int):
            return self.repositories[repo]
        return self.repositories[self.names[repo.lower()]]

    def app(self, slug: str) -> App:
        return next(app for app in self.apps.values() if app.slug == slug)

    def installation_on(self, app: App, repository: Repository) -> Installation | None:
        return next(
            (i for i in self.installations.values() if i.app is app and i.covers(repository)), None
        )

    def role_of(self, account: Account, repository: Repository) -> Role:
        """What this account may do here as a person (Apps go by their permissions)."""
        if account is repository.owner:
            return Role.ADMIN
        role = repository.collaborators.get(account.login.lower(), Role.NONE)
        if role is Role.NONE and account.login.lower() in repository.owner.members:
            role = Role.READ
        if role is Role.NONE and not repository.private:
            role = Role.READ
        return role

    # Making

    def add_user(
        self, login: str, *, id: int | None = None, name: str | None = None, type: str = "User"
    ) -> Account:
        """Makes the account, or gives the one that exists."""
        with self.lock:
            known = self.accounts.get(login.lower())
            if known is not None:
                return known
            account = Account(
                id=self.next_id("account") if id is None else id,
                login=login,
                type=type,
                name=name or login,
                created_at=self.now_stamp(),
            )
            self.accounts[login.lower()] = account
            return account

    def add_organization(
        self, login: str, *, id: int | None = None, members: Iterable[str] = ()
    ) -> Account:
        with self.lock:
            organization = self.add_user(login, id=id, type="Organization")
            for member in members:
                self.add_user(member)
                organization.members.add(member.lower())
            return organization

    def add_token(self, login: str) -> str:
        """A personal access token that acts as this user."""
        with self.lock:
            value = "ghp_" + f"{self.random.getrandbits(180):045x}"[:36]
            self.tokens[value] = Token(value, self.add_user(login))
            return value

    def add_app(
        self,
        slug: str,
        app_id: int | None = None,
        *,
        private_key: str | None = None,
        owner: str = "sandbox-owner",
        permissions: Mapping[str, str] = APP_PERMISSIONS,
        events: Sequence[str] = APP_EVENTS,
        webhook_url: str | None = None,
        webhook_secret: str = "",
    ) -> str:
        """Registers an App with its bot user `slug[bot]`; returns its private key (PEM).

        Making a key takes about 0.1 s: pass one in where that counts.
        """
        with self.lock:
            key = private_key or new_private_key()
            number = self.next_id("app") if app_id is None else app_id
            if number in self.apps:
                raise ValueError(f"App {number} exists")
            app = App(
                id=number,
                slug=slug,
                name=slug.capitalize(),
                client_id=f"Iv23li{number:014d}",
                owner=self.add_user(owner),
                bot=self.add_user(f"{slug}[bot]", type="Bot"),
                public_key=public_key_of(key),
                permissions=dict(permissions),
                events=list(events),
                created_at=self.now_stamp(),
            )
            self.apps[number] = app
            if webhook_url is not None:
                app.hook = Hook(webhook_url, webhook_secret)
            return key

    def add_repository(
        self,
        full_name: str,
        *,
        id: int | None = None,
        private: bool = False,
        labels: Sequence[tuple[str, str, str]] = DEFAULT_LABELS,
        description: str | None = None,
        has_issues: bool = True,
    ) -> Repository:
        """A repository with a first commit and GitHub's usual labels; its owner is made."""
        with self.lock:
            owner_login, _, name = full_name.partition("/")
            if not name or "/" in name:
                raise ValueError(f"not OWNER/NAME: {full_name!r}")
            former = self.repositories.get(self.names.get(full_name.lower(), -1))
            if former is not None and former.full_name.lower() == full_name.lower():
                raise ValueError(f"{full_name} exists")
            repository = Repository(
                id=self.next_id("repository") if id is None else id,
                owner=self.add_user(owner_login),
                name=name,
                private=private,
                created_at=self.now_stamp(),
                description=description,
                has_issues=has_issues,
            )
            if repository.id in self.repositories:
                raise ValueError(f"repository {repository.id} exists")
            repository.updated_at = repository.pushed_at = repository.created_at
            self.repositories[repository.id] = repository
            self.names[full_name.lower()] = repository.id
            for label_name, color, text in labels:
                self.make_label(repository, label_name, color, text)
            self.put_file(full_name, "README.md", f"# {name}\n", message="Initial commit")
            self.tell(Happening("repository", "created", repository.owner, repository))
            return repository

    def make_label(
        self,
        repository: Repository,
        name: str,
        color: str = LABEL_COLOR_WHEN_MADE_IN_PASSING,
        description: str | None = None,
    ) -> Label:
        """Adds a label without telling anyone (`deeds.create_label` tells)."""
        label = Label(
            id=self.next_id("label"),
            name=name,
            color=color,
            description=description,
            default=name.lower() in DEFAULT_LABEL_NAMES,
        )
        repository.labels[name.lower()] = label
        return label

    def add_collaborator(self, repo: str, login: str, role: str) -> None:
        """`role` is one of read, triage, write, maintain, admin."""
        with self.lock:
            self.add_user(login)
            self.repository(repo).collaborators[login.lower()] = Role[role.upper()]

    def put_file(
        self,
        repo: str,
        path: str,
        text: str | None,
        *,
        author: str | None = None,
        message: str | None = None,
    ) -> str:
        """Commits this text at this path of the default branch (None removes it); gives the sha."""
        with self.lock:
            files = dict(self.repository(repo).files)
            if text is None:
                files.pop(path, None)
            else:
                files[path] = text
            words = message or f"{'Delete' if text is None else 'Update'} {path}"
            return self._commit(repo, files, {}, words, author, (path,))

    def put_entries(self, repo: str, entries: Mapping[bytes, Entry | None]) -> str:
        """Commits whatever git can hold (links, submodules, odd names, bytes that are no text) at
        these paths; None removes one. Only git shows it, the contents API does not."""
        with self.lock:
            files = dict(self.repository(repo).files)
            changed = tuple(path.decode(errors="replace") for path in entries)
            return self._commit(repo, files, entries, "Update", None, changed)

    def _commit(
        self,
        repo: str,
        files: dict[str, str],
        entries: Mapping[bytes, Entry | None],
        message: str,
        author: str | None,
        changed: tuple[str, ...],
    ) -> str:
        repository = self.repository(repo)
        former = repository.commits[-1].odd if repository.commits else {}
        odd = {path: each for path, each in {**former, **entries}.items() if each is not None}
        at = self.now_stamp()
        parents = tuple(commit.sha for commit in repository.commits[-1:])
        maker = self.add_user(author) if author else repository.owner
        tree = Tree(entries_of(files, odd)).oid
        made = commit_object(tree, parents, signature(maker, at), message)
        commit = Commit(made.oid, message, maker, at, parents, changed, tree, files, odd)
        repository.commits.append(commit)
        repository.pushed_at = at
        return commit.sha
