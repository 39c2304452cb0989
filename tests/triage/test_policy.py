"""The policy file: what stands in it, what it means where nothing stands, and each error."""

from copy import deepcopy
from datetime import time
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.triage.json_schema import problems
from triage.identifiers import JobKey, Mode
from triage.policy import (
    ROLES,
    Backlog,
    JobPolicy,
    Path,
    Permission,
    Policy,
    PolicyDocument,
    PolicyError,
    Problem,
    Summary,
    merged,
    read_policy,
    schema,
)
from triage.window import Every, Schedule

DAILY = "daily-issue-triage"
JOB = f"jobs.{DAILY}"
EXAMPLE: dict[str, Any] = {
    "jobs": {
        DAILY: {
            "schedule": {"every": "daily", "at": "09:00", "timezone": "Asia/Taipei"},
            "mode": "observe",
            "labels": {
                "bug": "Something that should work does not",
                "enhancement": "A request for something new",
                "question": "Asks how, reports no fault",
            },
            "exclusive": [["bug", "enhancement", "question"]],
            "min_confidence": 0.7,
            "max_issues": 50,
            "backlog": "labels",
            "language": "zh-TW",
            "summary": "daily",
            "on_opened": False,
            "commands": {"retriage": "triage"},
            "memory": "fresh",
            "code": False,
            "budget_usd": {"cold": 2.00, "resumed": 0.50},
            "max_turns": {"cold": 40, "resumed": 20},
        }
    }
}
"""The example of the design, as YAML gives it."""


def document(**settings: Any) -> PolicyDocument:
    """A file with one label and these settings of the job; each key stands on a line of its own."""
    return lined({"jobs": {DAILY: {"labels": {"bug": "It fails"}, **settings}}})


def lined(data: Any) -> PolicyDocument:
    """A document whose keys are numbered from line 1, as they come."""
    lines: dict[Path, int] = {}

    def walk(value: Any, path: Path) -> None:
        pairs = value.items() if isinstance(value, dict) else ()
        for key, item in pairs:
            lines[(*path, key)] = len(lines) + 1
            walk(item, (*path, key))

    walk(data, ())
    return PolicyDocument(data, lines)


def triage_of(found: PolicyDocument) -> JobPolicy:
    """The settings of the triage in a document."""
    settings = read_policy(found).triage
    assert settings is not None
    return settings


def errors(found: PolicyDocument) -> list[str]:
    """The problems of a document, as they are shown."""
    with pytest.raises(PolicyError) as caught:
        read_policy(found)
    assert str(caught.value) == "; ".join(str(problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


# --- What stands in it --------------------------------------------------------------------------


def test_the_example_of_the_design_is_read() -> None:
    """Each of its settings is there."""
    job = triage_of(PolicyDocument(EXAMPLE))
    assert (
        job.model_dump(mode="json") | {"schedule": EXAMPLE["jobs"][DAILY]["schedule"]}
        == (EXAMPLE["jobs"][DAILY])
    )
    assert job.schedule.schedule() == Schedule(Every.DAILY, time(9), ZoneInfo("Asia/Taipei"))


def test_only_labels_are_required() -> None:
    """The rest has defaults: the weakest mode, a careful first run, a summary a day."""
    job = triage_of(document())
    assert job == JobPolicy(labels={"bug": "It fails"})
    assert (job.mode, job.backlog, job.summary) == (Mode.OBSERVE, Backlog.LABELS, Summary.DAILY)
    assert (job.min_confidence, job.max_issues, job.language) == (0.7, 50, None)
    assert (job.on_opened, job.exclusive, job.memory) == (False, (), "fresh")
    assert job.commands.retriage is Permission.TRIAGE
    assert (job.budget_usd.cold, job.budget_usd.resumed) == (2.00, 0.50)
    assert (job.max_turns.cold, job.max_turns.resumed) == (40, 20)
    assert job.schedule.schedule() == Schedule(Every.DAILY, time(9), ZoneInfo("UTC"), 0)


@pytest.mark.parametrize(
    ("setting", "least", "most"),
    [
        (("min_confidence",), 0, 1),
        (("max_issues",), 1, 1000),
        (("budget_usd", "cold"), 0.01, 100),
        (("budget_usd", "resumed"), 0.01, 100),
        (("max_turns", "cold"), 1, 500),
        (("max_turns", "resumed"), 1, 500),
    ],
)
def test_every_number_has_its_bounds(setting: tuple[str, ...], least: float, most: float) -> None:
    """A slip of the keyboard does not cost a fortune."""

    def with_value(value: float) -> PolicyDocument:
        name, *inner = setting
        return document(**{name: {inner[0]: value} if inner else value})

    for value in (least, most):
        read_policy(with_value(value))
    for value in (least - 1, most + 1):
        assert len(errors(with_value(value))) == 1


def test_a_command_uses_the_settings_of_the_daily_job() -> None:
    """They are one family: there is no second place to set them."""
    policy = read_policy(document(mode="comment"))
    assert [*policy.scheduled] == [JobKey.DAILY]
    assert policy.of(JobKey.RETRIAGE) is policy.of(JobKey.DAILY) is policy.triage
    assert triage_of(document(mode="comment")).mode is Mode.COMMENT


def test_a_weekly_schedule_names_its_day() -> None:
    """Monday is 0."""
    weekly = {"every": "weekly", "at": "23:59", "weekday": "sunday"}
    schedule = triage_of(document(schedule=weekly)).schedule.schedule()
    assert (schedule.every, schedule.at, schedule.weekday) == (Every.WEEKLY, time(23, 59), 6)


def test_every_permission_but_the_authors_is_a_role() -> None:
    """What ``/retriage`` needs can be compared with what GitHub says that somebody has."""
    assert {str(item) for item in Permission} - {"author"} <= set(ROLES)


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (
            {"mode": "comments"},
            [f"line 5: {JOB}.mode: input should be 'observe', 'label' or 'comment'"],
        ),
        ({"modes": "label"}, [f"line 5: {JOB}.modes: unknown key; did you mean 'mode'?"]),
        ({"qqqqq": 1}, [f"line 5: {JOB}.qqqqq: unknown key"]),
        (
            {"schedule": {"every": "monthly"}},
            [f"line 6: {JOB}.schedule.every: input should be 'hourly', 'daily' or 'weekly'"],
        ),
        (
            {"schedule": {"at": "9:00"}},
            [
                f"line 6: {JOB}.schedule.at: "
                r"string should match pattern '^([01]\d|2[0-3]):[0-5]\d$'"
            ],
        ),
        (
            {"schedule": {"timezone": "Mars/Base"}},
            [
                f"line 6: {JOB}.schedule.timezone: "
                "'Mars/Base' is no time zone; one looks like Asia/Taipei"
            ],
        ),
        (
            {"schedule": {"timezon": "UTC"}},
            [f"line 6: {JOB}.schedule.timezon: unknown key; did you mean 'timezone'?"],
        ),
        (
            {"schedule": {"weekday": "sun"}, "memory": "all"},
            [
                f"line 6: {JOB}.schedule.weekday: input should be 'monday', 'tuesday', "
                "'wednesday', 'thursday', 'friday', 'saturday' or 'sunday'",
                f"line 7: {JOB}.memory: input should be 'fresh', 'findings' or 'resume'",
            ],
        ),
        (
            {"memory": "resume"},
            [f"line 5: {JOB}.memory: triage judges each issue on its own: write 'fresh'"],
        ),
        ({"schedule": "daily"}, [f"line 5: {JOB}.schedule: must be a map"]),
        (
            {"commands": {"retirage": "read"}},
            [f"line 6: {JOB}.commands.retirage: unknown key; did you mean 'retriage'?"],
        ),
        (
            {"exclusive": [["bug", "feature"]]},
            [f"line 5: {JOB}.exclusive: 'feature' is not among the labels"],
        ),
        (
            {"exclusive": [["bug", "bug"]]},
            [f"line 5: {JOB}.exclusive: 'bug' stands in one group twice"],
        ),
        (
            {"min_confidence": 70},
            [f"line 5: {JOB}.min_confidence: input should be less than or equal to 1"],
        ),
        (
            {"max_issues": 0},
            [f"line 5: {JOB}.max_issues: input should be greater than or equal to 1"],
        ),
        (
            {"language": "German"},
            [
                f"line 5: {JOB}.language: "
                "string should match pattern '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$'"
            ],
        ),
        (
            {"on_opened": "no", "summary": "never"},
            [
                f"line 6: {JOB}.summary: input should be 'daily', 'rolling' or 'off'",
                f"line 5: {JOB}.on_opened: input should be a valid boolean",
            ],
        ),
        (
            {"budget_usd": {"cold": 0}},
            [f"line 6: {JOB}.budget_usd.cold: input should be greater than 0"],
        ),
    ],
)
def test_each_error_has_its_line_and_its_path(settings: dict[str, Any], shown: list[str]) -> None:
    """All of them are told at once, with the word that was probably meant."""
    assert errors(document(**settings)) == shown


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, ["line 1: a policy is a map that starts with 'jobs:'"]),
        (["jobs"], ["line 1: a policy is a map that starts with 'jobs:'"]),
        ({}, ["jobs: is required"]),
        (
            {"job": {}},
            ["jobs: is required", "line 1: job: unknown key; did you mean 'jobs'?"],
        ),
        ({"jobs": None}, ["line 1: jobs: must be a map"]),
        ({"jobs": {DAILY: None}}, [f"line 2: {JOB}: must be a map"]),
        ({"jobs": {DAILY: {}}}, [f"line 2: {JOB}.labels: is required"]),
        (
            {"jobs": {"daily-issue-triag": {"labels": {"bug": ""}}}},
            ["line 2: jobs.daily-issue-triag: unknown job; did you mean 'daily-issue-triage'?"],
        ),
        (
            {"jobs": {"issue-retriage": {"labels": {"bug": ""}}}},
            ["line 2: jobs.issue-retriage: unknown job; did you mean 'daily-issue-triage'?"],
        ),
        ({"jobs": {}}, ["line 1: jobs: at least one job is needed"]),
        (
            {"jobs": {DAILY: {"labels": {"bug": None, "x" * 51: ""}}}},
            [
                f"line 4: {JOB}.labels.bug: input should be a valid string",
                f"line 5: {JOB}.labels.{'x' * 51}: string should have at most 50 characters",
            ],
        ),
    ],
)
def test_a_file_that_is_no_policy(data: Any, shown: list[str]) -> None:
    """Nothing that a YAML file may hold ends in anything but words."""
    assert errors(lined(data)) == shown


@pytest.mark.parametrize("word", ["retriage", "jobs", "labels", "cold"])
def test_a_setting_in_the_wrong_place_is_not_suggested_as_itself(word: str) -> None:
    """Only what may stand there is."""
    [error] = errors(document(schedule={word: "x"}))
    assert f"did you mean '{word}'" not in error


def test_a_job_that_the_file_may_not_name_is_not_suggested() -> None:
    """A command is a job too, but has no settings of its own."""
    [error] = errors(lined({"jobs": {"issue-retriage": {"labels": {"bug": ""}}}}))
    assert "'issue-retriage'" not in error


@pytest.mark.parametrize(
    "zone", ["", "Europe", "../../etc/passwd", "/etc/localtime", "a" * 5000, "\0", "tzdata.zi"]
)
def test_a_time_zone_is_a_name_of_the_database(zone: str) -> None:
    """Not a folder, not a path, not another file of it."""
    [error] = errors(document(schedule={"timezone": zone}))
    assert "is no time zone" in error


def test_a_line_that_is_not_known_is_not_shown() -> None:
    """A document without lines still gives the path."""
    problem = Problem(None, "jobs", "is required")
    assert str(problem) == "jobs: is required"
    assert errors(PolicyDocument({})) == ["jobs: is required"]


# --- The organisation's default -----------------------------------------------------------------


def test_without_a_default_the_repositorys_file_stands() -> None:
    """And nothing else."""
    own = document(mode="label")
    assert merged(None, own) is own


def test_the_repositorys_settings_win_one_by_one() -> None:
    """What it does not set comes from the organisation."""
    default = document(mode="comment", max_issues=10)
    own = lined({"jobs": {DAILY: {"mode": "label", "backlog": "skip"}}})
    job = triage_of(merged(default, own))
    assert (job.mode, job.max_issues, job.backlog) == (Mode.LABEL, 10, Backlog.SKIP)
    assert job.labels == {"bug": "It fails"}


def test_a_setting_is_taken_whole() -> None:
    """Two lists of labels are never mixed: nobody could tell what is allowed."""
    default = document(labels={"bug": "b", "docs": "d"}, schedule={"timezone": "Asia/Taipei"})
    own = lined({"jobs": {DAILY: {"labels": {"crash": "c"}, "schedule": {"at": "10:00"}}}})
    job = triage_of(merged(default, own))
    assert job.labels == {"crash": "c"}
    assert (job.schedule.at, job.schedule.timezone) == ("10:00", "UTC")


def test_merging_changes_neither_file() -> None:
    """They are read for other repositories too."""
    default, own = document(mode="comment"), lined({"jobs": {DAILY: {"mode": "label"}}})
    before = deepcopy((default.data, own.data))
    merged(default, own)
    assert (default.data, own.data) == before


def test_an_error_of_the_repository_is_not_hidden_by_the_default() -> None:
    """An unknown key, or a job that is no map, is still an error of its file."""
    assert errors(merged(document(), lined({"jobs": {DAILY: {"mod": 1}}}))) == [
        f"line 3: {JOB}.mod: unknown key; did you mean 'mode'?"
    ]
    assert errors(merged(document(), lined({"jobs": {DAILY: 5}}))) == [
        f"line 2: {JOB}: must be a map"
    ]
    assert errors(merged(document(), lined({"job": {}, "jobs": {}}))) == [
        "line 1: job: unknown key; did you mean 'jobs'?"
    ]
    assert errors(merged(document(), PolicyDocument(None))) == [
        "line 1: a policy is a map that starts with 'jobs:'"
    ]


def test_a_default_that_is_no_policy_is_left_alone() -> None:
    """The repository's own file is enough."""
    own = document(mode="label")
    broken: list[Any] = [None, [], {"jobs": 5}]
    for data in broken:
        assert read_policy(merged(PolicyDocument(data), own)) == read_policy(own)


# --- The schema ---------------------------------------------------------------------------------


def test_the_schema_takes_the_example_of_the_design() -> None:
    """An editor that uses it finds nothing wrong."""
    assert problems(schema(), EXAMPLE) == []


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("mode",), "comments", "mode: enum"),
        (("labels",), {}, "labels: minProperties"),
        (("labels",), {"x" * 51: ""}, f"labels.{'x' * 51}: maxLength"),
        (("labels", "bug"), 5, "labels.bug: type"),
        (("exclusive",), ["bug"], "exclusive.0: type"),
        (("min_confidence",), 2, "min_confidence: maximum"),
        (("max_issues",), 0, "max_issues: minimum"),
        (("language",), "German", "language: anyOf"),
        (("on_opened",), "no", "on_opened: type"),
        (("schedule", "at"), "9:00", "schedule.at: pattern"),
        (("schedule", "zone"), "UTC", "schedule.zone: additionalProperties"),
        (("budget_usd", "cold"), 0, "budget_usd.cold: exclusiveMinimum"),
        (("modes",), "label", "modes: additionalProperties"),
    ],
)
def test_the_schema_knows_the_rules(path: tuple[str, ...], value: Any, word: str) -> None:
    """What the schema refuses, the program refuses too."""
    data = deepcopy(EXAMPLE)
    target = data["jobs"][DAILY]
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value
    assert problems(schema(), data) == [f".{JOB}.{word}"]
    with pytest.raises(PolicyError):
        read_policy(PolicyDocument(data))


def test_the_schema_requires_jobs_and_labels() -> None:
    """And knows the names of the jobs."""
    assert problems(schema(), {}) == [".jobs: required"]
    assert problems(schema(), {"jobs": {DAILY: {}}}) == [f".{JOB}.labels: required"]
    other = {"jobs": {"nightly": {"labels": {"bug": ""}}}}
    assert problems(schema(), other) == [".jobs.nightly: additionalProperties"]


def test_the_schema_describes_every_setting() -> None:
    """None is missing, and it names its standard."""
    described = schema()["$defs"]["JobPolicy"]["properties"]
    assert described.keys() == JobPolicy.model_fields.keys()
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema()["required"] == list(Policy.model_fields)
