"""What people and webhooks ask for, re-read before anything is done.

A command is answered by reactions alone: seen, done, refused. In observe mode by nothing.
"""

from datetime import timedelta

from ledger.records import Due, RepositoryRecord
from triage.asks import (
    Ask,
    Command,
    DeletedComment,
    Installed,
    Opened,
    Removed,
    RemovedLabel,
    RepositoryChanged,
    SeenEffect,
    Verb,
)
from triage.contract import RunInputs, RunRecord
from triage.identifiers import FAMILY, SCHEDULED, EffectKind, JobKey, Mode, effect_key
from triage.policy import ROLES, Commands, Permission
from worker import windows
from worker.pipeline import execute
from worker.ports import Gone, Place, Ports, ReadFailed
from worker.recovery import AGAIN, remember_place
from worker.resolving import UnresolvableError, resolution_of, resolve
from worker.stages.settling import RunReport

SEEN, DONE, REFUSED = "eyes", "+1", "confused"


async def handle_due(ask: Ask, due: Due, ports: Ports) -> RunReport | None:
    """Do what one delivery asks for, after which it is no longer due.

    It stays due where this does not come to its end, and where a run was only refused for now.
    """
    report = await handle(ask, ports)
    if report is not None and report.outcome == "refused":
        await ports.ledger.due.add(due, report.until or ports.clock.now() + AGAIN)
    else:
        await ports.ledger.due.remove(due)
    return report


async def handle(ask: Ask, ports: Ports) -> RunReport | None:
    """Do what one delivery asks for."""
    match ask:
        case Command():
            return await command(ask, ports)
        case Opened():
            return await opened(ask, ports)
        case SeenEffect():
            await ports.ledger.effects.note_hit(
                ask.effect_key, ask.github_id, ask.url, ask.digest, issue=ask.issue
            )
        case DeletedComment():
            await _deleted(ask, ports)
        case RemovedLabel():
            await _label_removed(ask, ports)
        case Installed():
            await _installed(ask, ports)
        case Removed():
            await _removed(ask, ports)
        case RepositoryChanged():
            await _changed(ask, ports)
    return None


async def command(ask: Command, ports: Ports) -> RunReport | None:
    """``/retriage``: by somebody with the permission that the policy names."""
    record = await _record(ask.repository_id, ask.repository, ask.installation, ports)
    record = await windows.refreshed(record, ports)
    own, earlier = await _told_of(ask, ports)
    policy = record.policy_of(JobKey.RETRIAGE if earlier is None else earlier.key.job)
    if policy is None or not record.active:
        ports.log("COMMAND-REFUSED", repository=record.full_name, reason="no policy")
        return None
    place = Place(record.id, record.full_name, record.installation)
    quiet = policy.mode is Mode.OBSERVE
    if not quiet:
        await ports.writer.react(place, ask.comment_id, SEEN)
    refusal = await _refusal(ask, record, ports)
    if own and earlier is None and ask.verb is not Verb.RESOLVE:
        refusal = refusal or "it is not known any more which run the issue tells of"
    if refusal:
        ports.log("COMMAND-REFUSED", repository=record.full_name, by=ask.login, reason=refusal)
        if not quiet:
            await ports.writer.react(place, ask.comment_id, REFUSED)
        return None
    if ask.verb is Verb.RESOLVE:
        return await _resolve(ask, place, ports)
    wanted = windows.Ask(
        by="command",
        forced=str(ask.comment_id),
        force=ask.verb is Verb.FORCE,
        comment=ask.comment_id,
    )
    if earlier is not None:
        return await windows.run_again(record, earlier, wanted, ports)
    return await execute(_inputs(ask, record, wanted, ports), ports, by_hand=True)


async def _resolve(ask: Command, place: Place, ports: Ports) -> RunReport | None:
    """``/retriage resolve KEY done|retry|abandon why``, of a run of this repository."""
    try:
        decided = resolution_of(ask.arguments[1:], by=ask.login, at=ports.clock.now())
        report = await resolve(ask.arguments[1], decided, ports, repository_id=place.id)
    except UnresolvableError as error:
        ports.log("COMMAND-REFUSED", repository=place.full_name, by=ask.login, reason=str(error))
        await ports.writer.react(place, ask.comment_id, REFUSED)
        return None
    done = report.status is not None and report.status.final
    await ports.writer.react(place, ask.comment_id, DONE if done else REFUSED)
    return report


async def _refusal(ask: Command, record: RepositoryRecord, ports: Ports) -> str:
    """Why the command is not obeyed; empty where it is."""
    if ask.verb is Verb.UNKNOWN:
        return f"unknown command /retriage {' '.join(ask.arguments)}"
    commands = record.policy.commands if record.policy is not None else Commands()
    needed = commands.retriage
    deciding = ask.verb is Verb.RESOLVE
    if needed is Permission.AUTHOR and ask.is_author and not deciding:
        return ""
    raised = needed is Permission.AUTHOR or (deciding and needed is Permission.READ)
    least = Permission.TRIAGE if raised else needed
    place = Place(record.id, record.full_name, record.installation)
    try:
        role = await ports.reader.role(place, ask.login)
    except ReadFailed as failure:
        return f"the permission could not be read: {failure.detail}"
    known = role if role in ROLES else "none"
    return "" if ROLES.index(known) >= ROLES.index(least) else f"{role} may not, {least} may"


async def _told_of(ask: Command, ports: Ports) -> tuple[bool, RunRecord | None]:
    """Whether the command stands on a summary or a review, and the run that it tells of; None where
    a ledger that was lost has forgotten that."""
    record = await ports.ledger.effects.by_github_id(ask.repository_id, ask.issue_id)
    if record is None or record.kind is not EffectKind.SUMMARY:
        return False, None
    return True, (await ports.ledger.leases.view(record.writer or record.holder)).run


def _inputs(
    ask: Command | Opened, record: RepositoryRecord, wanted: windows.Ask, ports: Ports
) -> RunInputs:
    policy = record.policy
    if policy is None:
        raise ValueError(f"{record.full_name} has no policy")
    comment = ask.comment_id if isinstance(ask, Command) else None
    window = f"opened-{ask.issue_id}" if comment is None else f"comment-{comment}"
    key = windows.key_of(
        record.id, policy, JobKey.RETRIAGE, window, windows.Ask(by=wanted.by), ports
    )
    return RunInputs(
        dedupe_key=str(key),
        repository_id=record.id,
        repository=record.full_name,
        installation=record.installation,
        policy=policy,
        mode=policy.mode,
        by=wanted.by,
        due_at=ports.clock.now(),
        target_issue=ask.issue,
        command_comment=comment,
        force=wanted.force,
    )


async def opened(ask: Opened, ports: Ports) -> RunReport | None:
    """A new issue, where the policy wants it triaged as it is opened.

    A repository that the ledger does not know is taken in: no installation told of it, because it
    was made since, or because that webhook was lost.
    """
    record = await ports.ledger.repositories.get(ask.repository_id)
    if record is None:
        await remember_place(Place(ask.repository_id, ask.repository, ask.installation), ports)
        due = Due.window(JobKey.DAILY, ask.repository_id)
        await ports.ledger.due.add(due, ports.clock.now())
        return None
    if record.policy is None or not record.policy.on_opened:
        return None
    return await execute(_inputs(ask, record, windows.Ask(by="opened"), ports), ports)


async def _label_removed(ask: RemovedLabel, ports: Ports) -> None:
    """A person took a label off: where the bot had put it on, it stays off."""
    key = _key(ask.repository_id, ask.issue_id, EffectKind.LABELS)
    record = (await ports.ledger.effects.get([key])).get(key)
    if record is not None and ask.label in record.own_labels:
        await ports.ledger.effects.note_removed_label(key, ask.label)


async def _deleted(ask: DeletedComment, ports: Ports) -> None:
    """A person deleted a comment of the bot: it is not posted again; unless that was one that
    another has taken the place of since."""
    effects = ports.ledger.effects
    record = await effects.by_github_id(ask.repository_id, ask.comment_id)
    if record is None and ask.effect_key:
        record = (await effects.get([ask.effect_key])).get(ask.effect_key)
    key = record.effect_key if record is not None else ask.effect_key
    stands = record.github_id if record is not None else None
    if key and stands in (None, ask.comment_id):
        await effects.note_tombstone(key)


async def _installed(ask: Installed, ports: Ports) -> None:
    """Remember the repositories and have their windows ensured at once."""
    await ports.ledger.repositories.add_bot_id(await ports.reader.bot_user_id())
    places = [Place(item.id, item.full_name, ask.installation) for item in ask.repositories]
    for place in places or await ports.reader.installation_repositories(ask.installation):
        await remember_place(place, ports)
        await ports.ledger.due.add(Due.window(JobKey.DAILY, place.id), ports.clock.now())


async def _removed(ask: Removed, ports: Ports) -> None:
    """Nothing is started any more in what the App lost."""
    ids = [item.id for item in ask.repositories]
    if ask.whole and not ids:
        ids = await ports.ledger.repositories.of_installation(ask.installation)
    for repository_id in ids:
        record = await ports.ledger.repositories.get(repository_id)
        if record is not None:
            await ports.ledger.repositories.save(
                record.model_copy(update={"active": False}), record
            )
        for job in SCHEDULED:
            await ports.ledger.due.remove(Due.window(job, repository_id))


async def _changed(ask: RepositoryChanged, ports: Ports) -> None:
    """Re-read a repository that was renamed, moved, archived or deleted."""
    record = await ports.ledger.repositories.get(ask.repository_id)
    if record is None:
        return
    place = Place(record.id, record.full_name, ask.installation or record.installation)
    now = await ports.reader.repository_by_id(place)
    active = not isinstance(now, Gone) and not now.archived
    name = record.full_name if isinstance(now, Gone) else now.place.full_name
    update = {"full_name": name, "installation": place.installation, "active": active}
    await ports.ledger.repositories.save(record.model_copy(update=update), record)
    if active:
        soon = ports.clock.now() + timedelta(seconds=1)
        await ports.ledger.due.add(Due.window(JobKey.DAILY, record.id), soon)


async def _record(
    repository_id: int, full_name: str, installation: str, ports: Ports
) -> RepositoryRecord:
    known = await ports.ledger.repositories.get(repository_id)
    if known is not None:
        return known
    return await remember_place(Place(repository_id, full_name, installation), ports)


def _key(repository_id: int, issue_id: int, kind: EffectKind) -> str:
    return effect_key(repository_id, issue_id, FAMILY[JobKey.RETRIAGE], kind)
