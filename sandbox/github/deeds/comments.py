"""What happens to comments, and reactions."""

from __future__ import annotations

from sandbox.github.clock import stamp
from sandbox.github.deeds.doer import Doer, change, current, tell_of_comment
from sandbox.github.history import History
from sandbox.github.state import Comment, CommentState, Issue, Reaction
from sandbox.github.world import World


def post_comment(world: World, doer: Doer, issue: Issue, body: str) -> Comment:
    at = world.clock.now()
    created = stamp(at)
    comment = Comment(
        id=world.next_id("comment"),
        issue=issue,
        author=doer.account,
        app=doer.app,
        created_at=created,
        history=History(at, CommentState(body, created)),
    )
    issue.repository.comments[comment.id] = comment
    issue.repository.comments_of[issue.number].append(comment)
    change(issue, at, comments=current(issue).comments + 1)
    tell_of_comment(world, doer, "created", comment)
    return comment


def edit_comment(world: World, doer: Doer, comment: Comment, body: str) -> None:
    before = comment.history.latest
    if before is None:
        raise LookupError(f"comment {comment.id} is gone")
    if before.body == body:
        return
    at = world.clock.now()
    comment.history.put(at, CommentState(body, stamp(at)))
    change(comment.issue, at)
    changes: dict[str, object] = {"body": {"from": before.body}}
    tell_of_comment(world, doer, "edited", comment, changes)


def delete_comment(world: World, doer: Doer, comment: Comment) -> None:
    if comment.history.latest is None:
        raise LookupError(f"comment {comment.id} is gone")
    tell_of_comment(world, doer, "deleted", comment)
    at = world.clock.now()
    comment.history.put(at, None)
    change(comment.issue, at, comments=current(comment.issue).comments - 1)


def react(
    world: World, doer: Doer, subject: Issue | Comment, content: str
) -> tuple[Reaction, bool]:
    """The reaction, and whether it is new: the same one by the same account exists once.

    No event, no webhook, and `updated_at` stays, as at GitHub.
    """
    for reaction in subject.reactions:
        if reaction.user is doer.account and reaction.content == content:
            return reaction, False
    made = Reaction(world.next_id("reaction"), doer.account, content, world.now_stamp())
    subject.reactions.append(made)
    return made, True
