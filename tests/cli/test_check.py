"""``retriage check``: the policy file, before it is committed."""

import json

import yaml

from tests.cli.terminal import Terminal


def test_the_example_passes_and_its_settings_are_shown(bare: Terminal) -> None:
    """What --example prints can be committed as it is; each setting stands in it."""
    file = bare.folder / "retriage.yml"
    file.write_text(bare.type("check", "--example").out, encoding="utf-8")
    ended = bare.type("check", str(file))
    assert ended.code == 0
    settings = yaml.safe_load(ended.out)["jobs"]["daily-issue-triage"]
    assert settings["mode"] == "observe"
    assert settings["max_turns"] == {"cold": 40, "resumed": 20}
    shown = file.read_text(encoding="utf-8")
    named = set(settings) - {"memory"}  # of what is not there yet, the example says nothing
    assert {name for name in named if f"{name}:" not in shown} == set()


def test_the_jobs_in_its_comments_pass_too(bare: Terminal) -> None:
    """Whoever takes the ``#`` away has all three."""
    shown = bare.type("check", "--example").out
    file = bare.folder / "retriage.yml"
    sentence = "  # What changed in these, in a report; nothing else is fetched.\n"
    above, _, below = shown.replace(sentence, "").partition("  # nightly-repo-review:\n")
    uncommented = f"  nightly-repo-review:\n{below}".replace("\n  # ", "\n  ")
    file.write_text(above + uncommented.replace("  #   schedule", "    schedule"))
    ended = bare.type("check", str(file))
    assert ended.code == 0, ended.err
    jobs = yaml.safe_load(ended.out)["jobs"]
    assert jobs["nightly-repo-review"]["memory"] == "resume"
    assert [item["kind"] for item in jobs["resource-watch"]["resources"]] == ["feed"]


def test_each_error_has_its_line(bare: Terminal) -> None:
    """Like a compiler's: an editor finds the place."""
    file = bare.folder / "broken.yml"
    file.write_text(
        "jobs:\n  daily-issue-triage:\n    labls: {bug: x}\n    labels: {bug: x}\n    mode: shout\n"
    )
    ended = bare.type("check", str(file))
    assert ended.code == 2
    assert ended.out == ""
    lines = ended.err.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:5", f"{file}:3"]
    assert "did you mean 'labels'?" in lines[1]


def test_what_is_no_yaml_and_what_is_not_there(bare: Terminal) -> None:
    """One line each."""
    file = bare.folder / "no.yml"
    file.write_text("jobs:\n  - [\n")
    for name in (str(file), "missing.yml", "."):
        ended = bare.type("check", name)
        assert ended.code == 2
        assert len(ended.err.splitlines()) == 1
        assert ended.err.startswith(name)


def test_the_schema_is_one(bare: Terminal) -> None:
    """Editors take it."""
    schema = json.loads(bare.type("check", "--schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "jobs" in schema["properties"]


def test_nothing_to_check(bare: Terminal) -> None:
    """Exactly one thing is asked for."""
    assert bare.type("check").code == 2
