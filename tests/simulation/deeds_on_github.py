"""What people do on GitHub in a schedule, and what GitHub does to requests and views."""

from random import Random

from sandbox.github.faults import (
    PATCH_COMMENT,
    POST_COMMENT,
    POST_ISSUE,
    POST_LABELS,
)
from sandbox.github.seen import SeenComment, SeenIssue
from tests.simulation.books import Spoiled, valid_marker
from tests.simulation.scene import OTHER, Scene, policy
from tests.simulation.world import BOT, REPOSITORY
from triage.marker import MarkerKey, MarkerKeys, stamp

FORGED = MarkerKeys((MarkerKey("k1", b"not the bot's own"),))
WRITES = (POST_COMMENT, POST_COMMENT, POST_LABELS, POST_ISSUE, PATCH_COMMENT, "* ", "GET .")
HOWS = (
    "drop",
    "apply then drop",
    "502",
    "apply then 502",
    "hang before applying",
    "hang after applying",
)
VIEWS = (
    None,
    "issue_comments",
    "repository_comments",
    "issues",
    "issues_by_creator",
    "comment",
    "issue",
)
WORDS = ("Bug: c", "Question: d", "Enhancement: e", "Hello")


def _issue(on: Scene, dice: Random) -> SeenIssue | None:
    """One of the issues of people."""
    found = [issue for issue in on.w.github.issues(REPOSITORY) if issue.author != BOT]
    return dice.choice(found) if found else None


def _own(on: Scene, dice: Random) -> tuple[int, SeenComment] | None:
    """One of the bot's comments, with its issue."""
    found = [
        (issue.number, comment)
        for issue in on.w.github.issues(REPOSITORY)
        for comment in on.w.own_comments(issue.number)
    ]
    return dice.choice(found) if found else None


# --- People ---------------------------------------------------------------------------------------


async def open_issue(on: Scene, dice: Random) -> str | None:
    """Somebody opens an issue."""
    if len(on.w.github.issues(REPOSITORY)) > 4:
        return None
    title = dice.choice(WORDS)
    number = on.w.github.as_user("reporter").open_issue(REPOSITORY, title, "As the title says.")
    on.books.touched.add(number)
    return f"{number} {title!r}"


async def say(on: Scene, dice: Random) -> str | None:
    """Somebody says ``/retriage``: who may, or who may not."""
    issue = _issue(on, dice)
    if issue is None:
        return None
    login = dice.choice(("alice", "alice", "alice", "mallory"))
    words = dice.choice(("/retriage", "/retriage", "/retriage --force"))
    on.w.github.as_user(login).comment(REPOSITORY, issue.number, words)
    if login == "alice" and words.endswith("--force"):
        on.books.lift(issue.number)
    on.books.touched.add(issue.number)
    return f"{login} on {issue.number}: {words}"


async def retitle(on: Scene, dice: Random) -> str | None:
    """The reporter gives an issue another title."""
    issue = _issue(on, dice)
    if issue is None:
        return None
    title = dice.choice(WORDS)
    on.w.github.as_user("reporter").edit_issue(REPOSITORY, issue.number, title=title)
    on.books.touched.add(issue.number)
    return f"{issue.number} {title!r}"


async def unlabel(on: Scene, dice: Random) -> str | None:
    """A person takes a label of the bot's off."""
    issue = _issue(on, dice)
    if issue is None or not issue.labels:
        return None
    label = dice.choice(issue.labels)
    on.w.github.as_user("alice").unlabel(REPOSITORY, issue.number, label)
    on.books.touched.add(issue.number)
    if any(label in row.own and row.issue == issue.number for row in _rows(on)):
        on.books.removed[issue.number, label] = on.books.now
    return f"{label} off {issue.number}"


async def label(on: Scene, dice: Random) -> str | None:
    """A person labels an issue."""
    issue = _issue(on, dice)
    known = sorted(on.w.github.repository(REPOSITORY).labels)
    if issue is None or not known:
        return None
    name = dice.choice(known)
    on.w.github.as_user("alice").label(REPOSITORY, issue.number, name)
    on.books.touched.add(issue.number)
    on.books.removed.pop((issue.number, name), None)
    return f"{name} on {issue.number}"


async def delete_comment(on: Scene, dice: Random) -> str | None:
    """A person deletes the bot's comment."""
    found = _own(on, dice)
    if found is None:
        return None
    number, comment = found
    on.w.github.as_user("alice").delete_comment(REPOSITORY, comment.id)
    on.books.touched.add(number)
    on.books.deletions += 1
    if any(row.github_id == comment.id for row in _rows(on)):
        on.books.deleted[number] = on.books.now
    return f"{comment.id} of {number}"


def _rows(on: Scene):  # type: ignore[no-untyped-def]
    return on.books.state.effects.values()


async def edit_comment(on: Scene, dice: Random) -> str | None:
    """A person edits the bot's comment: its text, or its marker."""
    found = _own(on, dice)
    if found is None:
        return None
    number, comment = found
    first, _, rest = comment.body.partition("\n")
    forged = f"{first[:-12]}00000000 -->\n{rest}"
    text = dice.choice((f"{comment.body}\nNo.", rest, forged, forged))
    on.w.github.as_user("alice").edit_comment(REPOSITORY, comment.id, text)
    on.books.spoiled.pop(comment.id, None)
    marker = valid_marker(comment.body, on.w.keys)
    if text == rest and marker is not None:
        on.books.unmarked.add(marker.effect_key)
    if text == forged:
        on.books.spoiled[comment.id] = Spoiled(on.books.now, forged)
    on.books.touched.add(number)
    return f"{comment.id} of {number}"


async def forge(on: Scene, dice: Random) -> str | None:
    """Somebody pastes a marker: the bot's own, or one that they signed."""
    issue, found = _issue(on, dice), _own(on, dice)
    if issue is None:
        return None
    text = "Look:"
    if found is not None and dice.random() < 0.7:
        text = found[1].body
    else:
        rows = sorted(on.books.state.effects)
        if not rows:
            return None
        text = stamp("Done.", effect_key=dice.choice(rows), run="a:R1:b:c", keys=FORGED)
    on.w.github.as_user("mallory").comment(REPOSITORY, issue.number, text)
    on.books.touched.add(issue.number)
    return f"on {issue.number}"


async def lock(on: Scene, dice: Random) -> str | None:
    """A person locks an issue, or unlocks it."""
    issue = _issue(on, dice)
    if issue is None:
        return None
    alice = on.w.github.as_user("alice")
    (alice.unlock if issue.locked else alice.lock)(REPOSITORY, issue.number)
    on.books.touched.add(issue.number)
    return f"{issue.number} {'unlocked' if issue.locked else 'locked'}"


async def close(on: Scene, dice: Random) -> str | None:
    """A person closes an issue, or reopens it."""
    issue = _issue(on, dice)
    if issue is None:
        return None
    alice = on.w.github.as_user("alice")
    (alice.reopen if issue.state == "closed" else alice.close)(REPOSITORY, issue.number)
    on.books.touched.add(issue.number)
    return f"{issue.number} {'reopened' if issue.state == 'closed' else 'closed'}"


async def transfer(on: Scene, dice: Random) -> str | None:
    """An issue moves to another repository."""
    issue = _issue(on, dice)
    if issue is None:
        return None
    on.w.github.as_user("maintainer").transfer(REPOSITORY, issue.number, OTHER)
    return f"{issue.number}"


async def rename(on: Scene, dice: Random) -> str | None:
    """The repository has another name."""
    name = f"api{len(on.deeds)}"
    on.w.github.as_user("maintainer").rename_repository(REPOSITORY, name)
    return name


async def drop_label(on: Scene, dice: Random) -> str | None:
    """A label leaves the repository. Whoever has looked just now may still make it again."""
    known = sorted(on.w.github.repository(REPOSITORY).labels)
    if not known or any(not hand.idle for hand in on.hands):
        return None
    name = dice.choice(known)
    on.w.github.as_user("maintainer").delete_label(REPOSITORY, name)
    on.books.labels.discard(name)
    on.books.touched |= {issue.number for issue in on.w.github.issues(REPOSITORY)}
    return name


async def change_policy(on: Scene, dice: Random) -> str | None:
    """Another policy is committed."""
    settings = dice.choice(
        (
            {"mode": "label"},
            {"mode": "observe"},
            {"min_confidence": 0.8},
            {"min_confidence": 0.95},
            {"on_opened": True},
            {"summary": "off"},
            {"summary": "rolling"},
            {},
        )
    )
    on.w.put_policy(policy(**settings))
    if settings in ({"mode": "observe"}, {"min_confidence": 0.95}):
        on.books.touched |= {issue.number for issue in on.w.github.issues(REPOSITORY)}
    return f"{settings}"


# --- GitHub ---------------------------------------------------------------------------------------


async def fault(on: Scene, dice: Random) -> str | None:
    """A request or two go wrong."""
    where, how = dice.choice(WRITES), dice.choice(HOWS)
    options: dict[str, object] = {"occurrence": dice.choice((1, 1, 2))}
    if how.startswith("hang"):
        options["seconds"] = dice.choice((4.0, 25.0, 90.0, 400.0))
    on.w.github.fail(where, how, **options)
    return f"{how}, {where} {options}"


async def lost_reply(on: Scene, dice: Random) -> str | None:
    """A write is applied, and nobody is told."""
    where, how = (
        dice.choice((POST_COMMENT, POST_COMMENT, POST_ISSUE, POST_LABELS)),
        dice.choice(HOWS[1:4:2]),
    )
    on.w.github.fail(where, how)
    return f"{how}, {where}"


async def out_of_reach(on: Scene, dice: Random) -> str | None:
    """GitHub does not answer, or fails, for some requests in a row."""
    how, times = dice.choice(HOWS[:4]), dice.choice((2, 4, 8))
    on.w.github.fail("* ", how, times=times)
    return f"{how}, {times} times"


async def limited(on: Scene, dice: Random) -> str | None:
    """GitHub asks to come back later, with a time or without."""
    how = dice.choice(("403 secondary", "429", "403 primary", "401"))
    after = dice.choice((None, 30, 120))
    where = dice.choice((POST_COMMENT, POST_LABELS, "POST .*/issues", "* "))
    options = {} if how in ("401", "403 primary") else {"retry_after": after}
    on.w.github.fail(where, how, times=dice.choice((1, 1, 3)), **options)
    return f"{how}, {where} {options}"


async def late(on: Scene, dice: Random) -> str | None:
    """A request that creates something gets lost, and will land much later."""
    where = dice.choice((POST_COMMENT, POST_COMMENT, POST_ISSUE))
    how = dice.choice(("drop then apply", "502 then apply"))
    on.w.github.fail(where, how)
    return f"{how}, {where}"


async def land(on: Scene, dice: Random) -> str | None:
    """Late requests land."""
    number = on.land_late()
    return f"{number}" if number else None


async def lag(on: Scene, dice: Random) -> str | None:
    """Views show what is so late, or now and then, by less than the absence window."""
    window = on.w.timing.absence_window.total_seconds()
    seconds = window * dice.choice((0.05, 0.3, 0.6))
    view, how = dice.choice(VIEWS), dice.choice(("stale", "flap"))
    options: dict[str, object] = {"view": view} if view else {}
    on.w.github.fail("GET .", how, lag=seconds, seed=dice.randrange(1000), **options)
    on.books.lag = max(on.books.lag, seconds)
    return f"{how} by {seconds:.0f} s, {view or 'all views'}"


async def fresh(on: Scene, dice: Random) -> str | None:
    """Nothing of GitHub's fails or lags any more."""
    if not on.w.github.faults.armed:
        return None
    on.w.github.faults.clear()
    return "no faults"
