"""What ``retriage run`` is asked for, checked: the job, the mode, the repository, its policy.

Each thing that is missing is one line with the way out.
"""

import re
from dataclasses import dataclass

from cli.checking import policy_lines
from cli.failures import Code, CommandError
from cli.options import did_you_mean
from cli.terminal import at, clean
from ledger.records import RepositoryRecord
from triage.contract import RunInputs
from triage.identifiers import JobKey, Mode
from triage.policy import PolicyError, merged, read_policy
from worker.ports import Gone, Place, Ports, ReadFailed
from worker.recovery import remember_place
from worker.settings import Process, Settings, read_settings
from worker.windows import Ask, inputs_of, refreshed, slot_of

POLICY = ".github/retriage.yml"
_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ADDRESS = re.compile(r"(?:https?://[^/]+/|git@[^:]+:)?([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Wish:
    """The command line as it was typed."""

    repository: str
    job: str
    window: str | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The same, understood."""

    repository: str
    job: JobKey
    window: str | None
    mode: Mode | None


def prepared(wish: Wish) -> tuple[Wanted, Settings]:
    """What is wanted and the settings for it. Raises CommandError and SettingsError."""
    wanted = _understood(wish)
    settings = read_settings(Process.RUN)
    _may(wanted.mode, settings)
    return wanted, settings


def _understood(wish: Wish) -> Wanted:
    return Wanted(_repository(wish.repository), _job(wish.job), wish.window, _mode(wish.mode))


def _repository(text: str) -> str:
    """``OWNER/REPO``; an address of it is understood too."""
    if _FULL_NAME.fullmatch(text):
        return text
    address = _ADDRESS.fullmatch(text)
    if address is None:
        raise CommandError(f"{clean(text)!r} is no repository: write OWNER/REPO, like acme/api")
    return address.group(1)


def _job(text: str) -> JobKey:
    if text == JobKey.RETRIAGE:
        raise CommandError(f"--job {text} is started on an issue, by the comment /retriage")
    try:
        return JobKey(text)
    except ValueError as error:
        hint = did_you_mean(text, [JobKey.DAILY]) or f"; there is {JobKey.DAILY}"
        raise CommandError(f"--job {clean(text)!r} is no job{hint}") from error


def _mode(text: str | None) -> Mode | None:
    try:
        return None if text is None else Mode(text)
    except ValueError as error:
        known = [str(mode) for mode in Mode]
        raise CommandError(
            f"--mode {clean(text or '')!r} is none of {', '.join(known)}"
            f"{did_you_mean(text or '', known)}"
        ) from error


def _may(mode: Mode | None, settings: Settings) -> None:
    """A person's token only observes, unless its account is named as the bot's.

    Raises CommandError.
    """
    if mode in (None, Mode.OBSERVE) or settings.may_write:
        return
    raise CommandError(
        f"GITHUB_TOKEN alone may only observe, not {mode}: add --mode observe, set APP_ID and "
        "PRIVATE_KEY, or name the token's account as the bot's own in RETRIAGE_BOT_ID"
    )


async def inputs_for(wanted: Wanted, settings: Settings, ports: Ports) -> RunInputs:
    """The frozen inputs of the run that is wanted. Raises CommandError."""
    try:
        place = await _place(wanted.repository, settings, ports)
        if settings.may_write:  # a person's issues are not the bot's
            await ports.ledger.repositories.add_bot_id(await ports.reader.bot_user_id())
        record = await refreshed(await remember_place(place, ports), ports)
        if record.policy is None:
            raise await _without_policy(record, place, ports)
    except ReadFailed as failure:
        raise unreadable(failure, settings) from failure
    _may(wanted.mode or record.policy.mode, settings)
    now = ports.clock.now()
    try:
        slot = slot_of(record.policy, wanted.window, now)
    except ValueError as error:
        raise CommandError(f"--window: {clean(str(error))}") from error
    if slot.due_at > now:
        due = at(slot.due_at, record.policy.schedule.timezone)
        raise CommandError(f"--window: {slot.key} is not due before {due}")
    return await inputs_of(record, wanted.job, slot, Ask(by="hand", mode=wanted.mode), ports)


async def _place(name: str, settings: Settings, ports: Ports) -> Place:
    found = await ports.reader.repository(name)
    if not isinstance(found, Gone):
        return found.place
    if settings.has_app:
        raise CommandError(
            f"{name} was not found, or the App is not installed on it: check the name, and the "
            "App's installations on GitHub"
        )
    raise CommandError(f"{name} was not found, or GITHUB_TOKEN may not see it: check both")


async def _without_policy(record: RepositoryRecord, place: Place, ports: Ports) -> CommandError:
    """There is no file, or a broken one and none that was good before."""
    if not record.policy_notice:
        return CommandError(
            f"{record.full_name} has no policy: add {POLICY} to it; an example: retriage check "
            "--example"
        )
    try:
        organisation, own = await ports.reader.policy(place)
        document = own if own is None or organisation is None else merged(organisation, own)
        read_policy(document) if document is not None else None
    except PolicyError as error:
        lines = policy_lines(POLICY, error)
        return CommandError(f"the policy of {record.full_name} cannot be used:", *lines)
    return CommandError(record.policy_notice)


def unreadable(failure: ReadFailed, settings: Settings) -> CommandError:
    """GitHub refused to be read, or did not answer."""
    detail = clean(failure.detail).rstrip(".")
    if failure.permanent:
        given = "APP_ID and PRIVATE_KEY" if settings.has_app else "GITHUB_TOKEN"
        return CommandError(f"{given} cannot be used: {detail}")
    if failure.retry_at is not None:
        until = at(failure.retry_at)
        return CommandError(f"GitHub asks to come back at {until}: {detail}", code=Code.REFUSED)
    return CommandError(
        f"GitHub at {settings.github_api_url} is out of reach: {detail}; nothing was written, run "
        "it again",
        code=Code.FAILED,
    )
