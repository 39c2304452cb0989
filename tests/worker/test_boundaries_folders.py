"""Data folder and checkouts may not contain each other: one clear line at the start."""

from pathlib import Path

import pytest

from worker.settings import Process, Settings, SettingsError, read_settings
from worker.settings.folders import contains_problem, overlap, unsafe_path

APART = "it and RETRIAGE_DATA_DIR must not lie in one another: the agent reads what is in it"
TOKEN = {"GITHUB_TOKEN": "ghp_0123456789abcdef", "ANTHROPIC_API_KEY": "key-of-model"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """These variables and no others, in an empty folder."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in TOKEN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return monkeypatch


@pytest.mark.parametrize(
    ("data", "checkouts", "problem"),
    [
        ("data", "data-checkouts", None),
        ("a/data", "a/checkouts", None),
        ("data", "database", None),
        ("data", "data/../checkouts", None),
        ("data", "data", APART),
        ("data", "data/checkouts", APART),
        ("data", "data/a/b/c", APART),
        ("checkouts/data", "checkouts", APART),
        (".", "checkouts", APART),
        ("data", ".", APART),
        ("data", "/", APART),
        ("data", "checkouts/../data/x", APART),
        ("data", "link/checkouts", APART),
        ("link", "data/checkouts", APART),
        ("data", "loop/x", None),
    ],
)
def test_folders_that_contain_each_other(
    tmp_path: Path, data: str, checkouts: str, problem: str | None
) -> None:
    """Either way round, links followed, whether they are there or not."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "loop").symlink_to("loop")
    assert contains_problem(tmp_path / data, tmp_path / checkouts) == problem
    assert overlap(tmp_path / checkouts, tmp_path / data) == (problem is not None)


@pytest.mark.parametrize("odd", list("*?[]{}()!,:;'\"\\ ~$&|<>\n"))
def test_path_that_a_rule_cannot_name(tmp_path: Path, odd: str) -> None:
    """Characters that widen a rule, break it, or cut it in two."""
    assert unsafe_path(tmp_path / f"a{odd}b" / "checkouts") is not None
    assert unsafe_path(tmp_path / "a-b_c.d+e@f=1é" / "checkouts") is None


def test_checkouts_lie_beside_the_data_folder(environment: pytest.MonkeyPatch) -> None:
    """In a folder that is named after it, wherever it is."""
    here = Path.cwd().resolve()
    assert read_settings(Process.RUN).checkout_dir == here / "data-checkouts"
    environment.setenv("RETRIAGE_DATA_DIR", "deep/state")
    assert read_settings(Process.RUN).checkout_dir == here / "deep/state-checkouts"
    environment.setenv("RETRIAGE_CHECKOUT_DIR", "~/elsewhere")
    assert read_settings(Process.RUN).checkout_dir == Path.home() / "elsewhere"


@pytest.mark.parametrize(
    ("data", "checkouts", "said"),
    [
        ("data", "data/checkouts", APART),
        ("data", ".", APART),
        ("/", "", APART),
        ("data", "check*outs", "its path may hold letters"),
    ],
)
def test_settings_that_would_show_the_data_folder_are_refused(
    environment: pytest.MonkeyPatch, data: str, checkouts: str, said: str
) -> None:
    """Every process says so in one line that names the variable."""
    environment.setenv("RETRIAGE_DATA_DIR", data)
    environment.setenv("RETRIAGE_CHECKOUT_DIR", checkouts)
    with pytest.raises(SettingsError) as caught:
        read_settings(Process.RUN)
    (line,) = caught.value.problems
    assert line.startswith(f"RETRIAGE_CHECKOUT_DIR: {said}")
