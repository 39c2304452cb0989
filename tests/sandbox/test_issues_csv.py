"""Filling the sandbox from a CSV; the demo's set; the example of the README."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import sandbox
from sandbox.github import GitHub
from sandbox.issues_csv import DEMO, load
from tests.sandbox.github_world import Api

HEAD = "repo,created_at,label,title,body\n"


def test_rows_become_unlabelled_issues(tmp_path: Path) -> None:
    """The truth stays outside: no label, and no trace of it over the API."""
    path = tmp_path / "issues.csv"
    path.write_text(
        HEAD + 'a/b,2023-08-26 06:33:37,bug,"It ""crashes""",On start\na/c,,feature,,\n'
    )
    rows = load(path)
    assert [(row.label, row.created_at) for row in rows] == [
        ("bug", "2023-08-26T06:33:37Z"),
        ("feature", ""),
    ]
    github = GitHub()
    assert github.fill(rows) == [1, 1]
    (issue,) = github.issues("a/b")
    assert (issue.title, issue.body, issue.labels) == ('It "crashes"', "On start", ())
    assert issue.created_at == issue.updated_at == "2023-08-26T06:33:37Z"
    assert github.issues("a/c")[0].title == "(no title)"


def test_one_repository_and_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "issues.csv"
    path.write_text(HEAD + "".join(f"a/{n % 2},,bug,t{n},b\n" for n in range(10)))
    assert [row.title for row in load(path, "A/1", limit=2)] == ["t1", "t3"]


def test_large_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "issues.csv"
    path.write_text(f"{HEAD}a/b,,bug,t,{'x' * 1_000_000}\n")
    assert len(load(path)[0].body) == 1_000_000


def test_another_csv_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "issues.csv"
    path.write_text("repo,title\na/b,t\n")
    with pytest.raises(ValueError, match="no column body, created_at, label"):
        load(path)


def test_authors_vary() -> None:
    github = GitHub()
    github.fill(load(DEMO))
    authors = {issue.author for issue in github.issues("acme/api")}
    assert len(authors) == 12


def test_the_demo_set() -> None:
    """Twenty-four issues in two repositories, the nasty ones among them."""
    rows = load(DEMO)
    assert Counter(row.repo for row in rows) == {"acme/api": 12, "acme/web": 12}
    assert set(Counter(row.label for row in rows)) == {"bug", "feature", "question"}
    texts = [f"{row.title}\n{row.body}" for row in rows]
    for wanted in (
        r"[一-鿿]{8}",
        r"[\u0600-\u06ff]{4}",
        "<img[^>]* onerror",
        "@everyone",
        "<!-- (?!retriage)",
        "<!-- retriage",
        "(?i)ignore (all )?(your |the )?previous instructions",
        "@/etc/passwd",
    ):
        assert any(re.search(wanted, text) for text in texts), wanted
    assert max(len(row.body) for row in rows) > 20_000
    assert all(len(row.body) < 65_536 for row in rows)


def test_the_demo_set_is_listed_as_it_is_written() -> None:
    github = GitHub()
    github.fill(load(DEMO))
    found = Api(github).list("/repos/acme/web/issues?per_page=100&direction=asc")
    assert [each["title"] for each in found] == [row.title for row in load(DEMO, "acme/web")]


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(next(iter(sandbox.__path__)), "README.md").read_text("utf-8")
    example = re.search(r"<!-- example -->\n```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    exec(compile(example[1], "README.md", "exec"), {})
    assert "['bug'] []" in capsys.readouterr().out
