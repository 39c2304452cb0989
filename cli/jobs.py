"""Jobs and modes by their names, as people type them."""

from collections.abc import Mapping, Sequence

from cli.failures import CommandError
from cli.options import did_you_mean
from cli.terminal import clean
from triage.identifiers import JobKey, Mode

MODES: Mapping[JobKey, tuple[Mode, ...]] = {
    JobKey.DAILY: tuple(Mode),
    JobKey.REVIEW: (Mode.OBSERVE, Mode.COMMENT),
    JobKey.WATCH: (Mode.OBSERVE,),
}
"""How far a job may go: a review labels nothing, a watch writes nothing but its report."""


def job_named(text: str, known: Sequence[JobKey]) -> JobKey:
    """The job of that name. Raises CommandError."""
    for job in known:
        if job == text:
            return job
    if text == JobKey.RETRIAGE:
        raise CommandError(f"--job {text} is started on an issue, by the comment /retriage")
    names = [str(job) for job in known]
    raise CommandError(
        f"--job {clean(text)!r} is none of {', '.join(names)}{did_you_mean(text, names)}"
    )


def mode_named(text: str, job: JobKey) -> Mode:
    """The mode of that name, which the job has. Raises CommandError."""
    known = [str(mode) for mode in Mode]
    if text not in known:
        raise CommandError(
            f"--mode {clean(text)!r} is none of {', '.join(known)}{did_you_mean(text, known)}"
        )
    mode, modes = Mode(text), MODES[job]
    if mode not in modes:
        raise CommandError(f"--mode {mode}: {job} does {' or '.join(modes)} alone")
    return mode
