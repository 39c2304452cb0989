"""The policy file: plain data with lines, one clear sentence for each error, and bounds."""

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from triage.policy import (
    Budget,
    Commands,
    JobPolicy,
    Policy,
    PolicyError,
    Reset,
    Resource,
    ReviewPolicy,
    ScheduleSetting,
    Turns,
    WatchPolicy,
    read_policy,
    schema,
)
from worker.policy_file import load_policy_file, parse_policy

DOCS = Path(__file__).parents[2] / "docs"


def test_each_key_knows_its_line() -> None:
    """Lists too: the problem of an item is told where the item stands."""
    document = parse_policy(b"jobs:\n  daily-issue-triage:\n    exclusive:\n    - [a,\n       b]\n")
    job = ("jobs", "daily-issue-triage")
    assert document.data == {"jobs": {"daily-issue-triage": {"exclusive": [["a", "b"]]}}}
    assert document.lines["jobs",] == 1
    assert document.lines[*job, "exclusive"] == 3
    assert document.lines[*job, "exclusive", 0, 1] == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("no", "no"),
        ("yes", "yes"),
        ("10:30", "10:30"),
        ("2026-09-16", "2026-09-16"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("5", 5),
        ("-5", -5),
        ("007", 7),
        ("0.70", 0.7),
        (".5", 0.5),
        ("2.", 2.0),
        ("1.5e3", 1500.0),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("9" * 30, "9" * 30),
        ("|-\n  two\n  lines", "two\nlines"),
    ],
)
def test_a_plain_value_is_what_json_would_make_of_it(text: str, value: object) -> None:
    """``summary: off`` and ``at: 10:30`` are words; YAML 1.1 would make false and 630 of them."""
    assert parse_policy(f"a: {text}\n".encode()).data == {"a": value}


def test_a_key_is_text_as_it_is_written() -> None:
    """A label may be called 404, no or 1.0."""
    document = parse_policy("404: a\nno: b\n1.0: c\n緊急: d\n".encode())
    assert document.data == {"404": "a", "no": "b", "1.0": "c", "緊急": "d"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: 'a' stands here twice"),
        ("1: a\n'1': b\n", "line 2: '1' stands here twice"),
        ("a: [1, 2\nb: 3\n", "line 2: not YAML: expected ',' or ']'"),
        ("a:\n\t- b\n", "line 2: not YAML: found character '\\t'"),
        ("a: b: c\n", "line 1: not YAML: mapping values are not allowed here"),
        ("a: b\n---\nc: d\n", "line 2: not YAML: "),
        ("a: !!python/name:os.system\n", "line 1: the tag "),
        ("a: !!int many\n", "line 1: 'many' is no int"),
        ("a: !custom x\n", "line 1: the tag "),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3: merging with '<<' is not supported"),
        ("? [a, b]\n: c\n", "line 1: a key must be text"),
        ("a: *nowhere\n", "line 1: not YAML: found undefined alias"),
        ("a: &a [*a]\n", "line 1: nested deeper than 20"),
        ("a: " + "[" * 30 + "]" * 30, "line 1: nested deeper than 20"),
        ("[" * 60_000, "nested deeper than 20"),
        ("a: \0\n", "not YAML: unacceptable character"),
    ],
)
def test_an_error_is_one_sentence_with_its_line(text: str, message: str) -> None:
    """What is wrong, and where; never a traceback."""
    with pytest.raises(PolicyError) as error:
        parse_policy(text.encode())
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_small_file_cannot_grow_large() -> None:
    """Aliases count as often as they are followed."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(PolicyError, match="more than 10000 values"):
        parse_policy("\n".join(lines).encode())


def test_size_and_encoding_are_checked_first() -> None:
    """64 KiB of UTF-8; a byte order mark does no harm."""
    with pytest.raises(PolicyError, match="larger than 64 KiB"):
        parse_policy(b"#" * (64 * 1024 + 1))
    with pytest.raises(PolicyError, match="line 2: the file is not UTF-8"):
        parse_policy(b"a: 1\nb: \xff\n")
    assert parse_policy(b"\xef\xbb\xbfa: 1\n").data == {"a": 1}


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "- a\n", "words\n"])
def test_what_is_no_map_is_told_by_the_policy(text: str) -> None:
    """It is YAML all the same."""
    with pytest.raises(PolicyError, match="a policy is a map that starts with 'jobs:'"):
        read_policy(parse_policy(text.encode()))


@given(st.binary(max_size=300))
def test_no_bytes_whatever_raise_anything_else(data: bytes) -> None:
    """A file is somebody else's text."""
    with contextlib.suppress(PolicyError):
        parse_policy(data)


@given(st.text(alphabet="ab:-[]{}&*!|>%@`'\"#?,\n\t <~01.", max_size=60))
def test_no_yaml_whatever_raises_anything_else(text: str) -> None:
    """The same, with characters that mean something."""
    with contextlib.suppress(PolicyError):
        parse_policy(text.encode())


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    """For ``retriage check FILE``: what cannot be read is a problem like any other."""
    path = tmp_path / "retriage.yml"
    path.write_text("jobs:\n  daily-issue-triage:\n    labels: {bug: A fault}\n")
    assert read_policy(load_policy_file(path)).triage == JobPolicy(labels={"bug": "A fault"})
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        load_policy_file(tmp_path / "none.yml")
    with pytest.raises(PolicyError, match="cannot be read: Is a directory"):
        load_policy_file(tmp_path)
    path.write_bytes(b"#" * 100_000)
    with pytest.raises(PolicyError, match="larger than 64 KiB"):
        load_policy_file(path)


# --- What is published -----------------------------------------------------------------------


def test_the_published_schema_is_current() -> None:
    """Made by ``triage.policy.schema``: write it again where this fails."""
    published = (DOCS / "retriage.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def example() -> str:
    """The example of docs/policy.md."""
    found = re.search(r"```yaml\n(.*?)```", (DOCS / "policy.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_documented_example_is_valid_and_names_every_setting() -> None:
    """Nothing that can be set is left out of it."""
    document = parse_policy(example().encode())
    read_policy(document)
    assert set(document.data["jobs"]["daily-issue-triage"]) == set(JobPolicy.model_fields)


def test_the_other_jobs_documented_example_names_every_setting() -> None:
    """Of the review and the watch too, and of what stands in them."""
    text = (DOCS / "policy.md").read_text("utf-8")
    document = parse_policy(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[1].encode())
    policy = read_policy(document)
    jobs = document.data["jobs"]
    assert set(jobs["nightly-repo-review"]) == set(ReviewPolicy.model_fields)
    assert set(jobs["nightly-repo-review"]["reset"]) == set(Reset.model_fields)
    assert set(jobs["resource-watch"]) == set(WatchPolicy.model_fields)
    assert set(jobs["resource-watch"]["resources"][0]) == set(Resource.model_fields)
    assert policy.jobs.review == ReviewPolicy(language="en")


GROUPS: dict[str, type[BaseModel]] = {
    "": JobPolicy,
    "schedule.": ScheduleSetting,
    "commands.": Commands,
    "budget_usd.": Budget,
    "max_turns.": Turns,
}


def test_every_setting_is_documented_with_its_default() -> None:
    """One line for each in the table of docs/policy.md."""
    lines = (DOCS / "policy.md").read_text(encoding="utf-8").splitlines()
    rows = {
        row[1].strip("` "): row[2].strip()
        for row in (line.split("|") for line in lines)
        if len(row) == 5 and row[1].strip().startswith("`")
    }
    fields = {
        f"{group}{name}": field
        for group, model in GROUPS.items()
        for name, field in model.model_fields.items()
    }
    assert set(rows) == {*fields, *Policy.model_fields}
    for name, field in fields.items():
        default = rows[name].strip("`").strip('"')
        if isinstance(field.default, bool):
            assert default == str(field.default).lower(), name
        elif isinstance(field.default, (int, float)):
            assert float(default) == field.default, name
        elif isinstance(field.default, str):
            assert default == str(field.default), name
