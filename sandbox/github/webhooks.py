"""Webhooks: payloads as GitHub's, signed, queued in an outbox that an adapter empties."""

from __future__ import annotations

import hmac
import json
from collections import deque
from dataclasses import dataclass

from sandbox.github.happenings import Happening
from sandbox.github.shapes import accounts as account_shape
from sandbox.github.shapes import issues as issue_shape
from sandbox.github.shapes import repositories as repository_shape
from sandbox.github.state import App, Hook, Installation
from sandbox.github.wire import Json
from sandbox.github.world import World

# Told to an App whatever it is subscribed to.
_ALWAYS = frozenset({"installation", "installation_repositories", "ping"})
_PERMISSION = {"issues": "issues", "issue_comment": "issues", "label": "issues"}
MOST_DELIVERIES = 2_000
ZEN = "Anything added dilutes everything else."


@dataclass(slots=True, eq=False)
class Delivery:
    """One webhook. `guid` stays the same when it is delivered again."""

    guid: str
    event: str
    action: str
    url: str
    headers: dict[str, str]
    body: bytes
    queued_at: str
    redelivery: bool = False
    status: int | None = None  # what the receiver answered
    error: str | None = None
    delivered_at: str | None = None

    def json(self) -> Json:
        return {
            "guid": self.guid,
            "event": self.event,
            "action": self.action,
            "url": self.url,
            "queued_at": self.queued_at,
            "redelivery": self.redelivery,
            "status": self.status,
            "error": self.error,
            "delivered_at": self.delivered_at,
        }


class Outbox:
    """Deliveries that are still to be made, oldest first. `held` keeps the server from sending."""

    def __init__(self) -> None:
        self.waiting: deque[Delivery] = deque()
        self.held = False

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, delivery: Delivery) -> None:
        self.waiting.append(delivery)

    def take(self) -> Delivery | None:
        """The next one, for whoever delivers it; None if there is none or they are held."""
        if self.held or not self.waiting:
            return None
        return self.waiting.popleft()

    def drain(self) -> list[Delivery]:
        """All of them, held or not: for a test that delivers by itself, in an order of its own."""
        taken = list(self.waiting)
        self.waiting.clear()
        return taken


class Webhooks:
    def __init__(self, world: World) -> None:
        self._world = world
        self.outbox = Outbox()
        self.deliveries: list[Delivery] = []
        world.listeners.append(self.hear)

    def hear(self, happening: Happening) -> None:
        """Queues a delivery for every App that is to be told of it."""
        for app in self._world.apps.values():
            hook = app.hook
            if hook is None or not hook.active or not _subscribed(hook, app, happening):
                continue
            installation = self._installation(app, happening)
            if installation is None:
                continue
            content = payload(happening, installation, self._world.base_url)
            self._queue(app, hook, happening.event, happening.action, content)

    def ping(self, slug: str) -> str:
        """Greets the App's receiver, as GitHub does when a webhook is set up; gives the GUID."""
        app = self._world.app(slug)
        if app.hook is None:
            raise LookupError(f"{slug} has no webhook")
        hook_url = f"{self._world.base_url}/app/hook"
        content: Json = {
            "zen": ZEN,
            "hook_id": app.id,
            "hook": {
                "type": "App",
                "id": app.id,
                "name": "web",
                "active": True,
                "app_id": app.id,
                "events": list(app.events),
                "deliveries_url": f"{hook_url}/deliveries",
                "config": {
                    "content_type": "json",
                    "insecure_ssl": "0",
                    "secret": "********",
                    "url": app.hook.url,
                },
                "updated_at": app.created_at,
                "created_at": app.created_at,
            },
            "sender": account_shape.user(app.owner, self._world.base_url),
        }
        return self._queue(app, app.hook, "ping", "", content).guid

    def redeliver(self, guid: str) -> Delivery:
        """Queues it again with the same GUID and body. Raises LookupError."""
        with self._world.lock:
            known = next((each for each in self.deliveries if each.guid == guid), None)
            if known is None:
                raise LookupError(f"no delivery {guid}")
            again = Delivery(
                guid=known.guid,
                event=known.event,
                action=known.action,
                url=known.url,
                headers=known.headers,
                body=known.body,
                queued_at=self._world.now_stamp(),
                redelivery=True,
            )
            self._keep(again)
            return again

    def _installation(self, app: App, happening: Happening) -> Installation | None:
        if happening.installation is not None:
            return happening.installation if happening.installation.app is app else None
        if happening.repository is None:
            return None
        found = self._world.installation_on(app, happening.repository)
        if found is None or found.deleted or found.suspended_at is not None:
            return None
        permission = _PERMISSION.get(happening.event)
        return found if permission is None or permission in found.permissions else None

    def _queue(self, app: App, hook: Hook, event: str, action: str, content: Json) -> Delivery:
        body = json.dumps(content, separators=(",", ":")).encode()
        guid = self._world.new_guid()
        delivery = Delivery(
            guid=guid,
            event=event,
            action=action,
            url=hook.url,
            headers=_headers(app, hook, event, guid, body),
            body=body,
            queued_at=self._world.now_stamp(),
        )
        self._keep(delivery)
        return delivery

    def _keep(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        if len(self.deliveries) > MOST_DELIVERIES:
            del self.deliveries[: MOST_DELIVERIES // 10]
        self.outbox.put(delivery)


def sign(secret: str, body: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}=" + hmac.new(secret.encode(), body, algorithm).hexdigest()


def _subscribed(hook: Hook, app: App, happening: Happening) -> bool:
    event = happening.event
    if event in _ALWAYS:
        return True
    return event in app.events and ("*" in hook.events or event in hook.events)


def _headers(app: App, hook: Hook, event: str, guid: str, body: bytes) -> dict[str, str]:
    headers = {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/sandbox",
        "X-GitHub-Delivery": guid,
        "X-GitHub-Event": event,
        "X-GitHub-Hook-ID": str(app.id),
        "X-GitHub-Hook-Installation-Target-ID": str(app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
    }
    if hook.secret:
        headers["X-Hub-Signature"] = sign(hook.secret, body, "sha1")
        headers["X-Hub-Signature-256"] = sign(hook.secret, body)
    return headers


def payload(happening: Happening, installation: Installation, base: str) -> Json:
    """The body of the webhook, with the state as it is at this moment."""
    content: Json = {"action": happening.action}
    repository = happening.repository
    if happening.issue is not None:
        content["issue"] = _issue(happening, base)
    if happening.comment is not None and happening.comment.history.latest is not None:
        content["comment"] = issue_shape.comment(
            happening.comment, happening.comment.history.latest, base
        )
    if happening.label is not None and repository is not None:
        content["label"] = issue_shape.label(happening.label, repository, base)
    changes = _changes(happening, base)
    if changes is not None:
        content["changes"] = changes
    if repository is not None:
        content["repository"] = repository_shape.repository(repository, base)
        if repository.owner.type == "Organization":
            content["organization"] = _organization(
                repository.owner.login, repository.owner.id, base
            )
    content["sender"] = account_shape.user(happening.sender, base)
    content["installation"] = (
        account_shape.installation(installation, base)
        if happening.installation is not None
        else {
            "id": installation.id,
            "node_id": account_shape.node_id("MDIzOk", installation.id),
        }
    )
    content.update(_repositories(happening, installation))
    return content


def _issue(happening: Happening, base: str) -> Json:
    issue = happening.issue
    if issue is None or issue.history.latest is None:
        return {}
    return issue_shape.issue(issue, issue.history.latest, base)


def _changes(happening: Happening, base: str) -> Json | None:
    moved = happening.moved_to
    if moved is None or moved.history.latest is None:
        return happening.changes
    return {
        "new_issue": issue_shape.issue(moved, moved.history.latest, base),
        "new_repository": repository_shape.repository(moved.repository, base),
    }


def _repositories(happening: Happening, installation: Installation) -> Json:
    listed = [account_shape.owner_summary(each) for each in happening.repositories]
    if happening.event == "installation":
        return {"repositories": listed, "requester": None}
    if happening.event == "installation_repositories":
        return {
            "repository_selection": "all" if installation.repository_ids is None else "selected",
            "repositories_added": listed if happening.action == "added" else [],
            "repositories_removed": listed if happening.action == "removed" else [],
            "requester": None,
        }
    return {}


def _organization(login: str, id: int, base: str) -> Json:
    url = f"{base}/orgs/{login}"
    return {
        "login": login,
        "id": id,
        "node_id": account_shape.node_id("O", id),
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": f"{base}/_sandbox/avatars/{id}",
        "description": None,
    }
