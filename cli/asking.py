"""What ``retriage run`` is asked for, checked: the job, the mode, the repository, its policy.

Each thing that is missing is one line with the way out.
"""

from dataclasses import dataclass

from cli.checking import policy_lines
from cli.clones import named
from cli.failures import Code, CommandError
from cli.jobs import job_named, mode_named
from cli.terminal import at, clean
from ledger.records import RepositoryRecord
from triage.contract import RunInputs
from triage.identifiers import SCHEDULED, JobKey, Mode
from triage.policy import PolicyError, merged, read_policy
from worker.ports import Gone, Place, Ports, ReadFailed
from worker.recovery import remember_place
from worker.settings import Process, Settings, read_settings
from worker.windows import Ask, inputs_of, refreshed, slot_of

POLICY = ".github/retriage.yml"


@dataclass(frozen=True, slots=True)
class Wish:
    """The command line as it was typed."""

    repository: str
    job: str
    window: str | None
    mode: str | None
    force: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The same, understood."""

    repository: str
    job: JobKey
    window: str | None
    mode: Mode | None
    force: bool


def prepared(wish: Wish) -> tuple[Wanted, Settings]:
    """What is wanted and the settings for it. Raises CommandError and SettingsError."""
    job = job_named(wish.job, SCHEDULED)
    mode = None if wish.mode is None else mode_named(wish.mode, job)
    settings = read_settings(Process.RUN)
    name = named(wish.repository, settings.github_api_url)
    wanted = Wanted(name, job, wish.window, mode, wish.force)
    _may(wanted.mode, settings)
    return wanted, settings


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
        policy = record.policy_of(wanted.job)
        if policy is None:
            raise await _without_policy(wanted.job, record, place, ports)
    except ReadFailed as failure:
        raise unreadable(failure, settings) from failure
    _may(wanted.mode or policy.mode, settings)
    now = ports.clock.now()
    try:
        slot = slot_of(policy, wanted.window, now)
    except ValueError as error:
        raise CommandError(f"--window: {clean(str(error))}") from error
    if slot.due_at > now:
        due = at(slot.due_at, policy.schedule.timezone)
        raise CommandError(f"--window: {slot.key} is not due before {due}")
    forced = ports.clock.token()[:8] if wanted.force else None
    ask = Ask(by="hand", mode=wanted.mode, forced=forced, force=wanted.force)
    return await inputs_of(record, wanted.job, slot, ask, ports)


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


async def _without_policy(
    job: JobKey, record: RepositoryRecord, place: Place, ports: Ports
) -> CommandError:
    """There is no file, or one without the job, or a broken one and none that was good before."""
    example = "an example: retriage check --example"
    jobs = [str(other) for other in SCHEDULED if record.policy_of(other) is not None]
    if not record.policy_notice and not jobs:
        return CommandError(f"{record.full_name} has no policy: add {POLICY} to it; {example}")
    if not record.policy_notice:
        return CommandError(
            f"the policy of {record.full_name} has no {job}, only {', '.join(jobs)}: add it to "
            f"{POLICY}; {example}"
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
