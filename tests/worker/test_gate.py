"""The gate as a table: which calls of tools pass, on real files and links."""

from pathlib import Path
from typing import cast

import pytest
from claude_agent_sdk import HookInput, HookJSONOutput

from tests.worker.gate_disk import make_repo
from worker.agent.gate import MOST_CHARACTERS, MOST_PIECES, expanded, gate, judge, plain
from worker.ports import Denial

OUTSIDE = "outside the repository"
KEPT_OUT = "a place that is kept out"
HOME = "a home folder"
UP = "a way up"
ODD = "odd characters"
BRACES = "braces that do not close, or too many"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repo(tmp_path_factory.mktemp("disk").resolve())


def verdict(root: Path, tool: str, fields: dict[str, object]) -> str | None:
    """Why a call is denied. ``ROOT`` in a text stands for the checkout, ``TOP`` for its parent."""
    filled = {
        name: value.replace("ROOT", str(root)).replace("TOP", str(root.parent))
        if isinstance(value, str)
        else value
        for name, value in fields.items()
    }
    found = judge(tool, filled, root)
    return found.reason if found else None


PATHS: list[tuple[str, str | None]] = [
    ("a.txt", None),
    ("ROOT/a.txt", None),
    ("ROOT", None),
    (".", None),
    ("./src/../a.txt", None),
    ("src//main.py", None),
    ("with space.txt", None),
    ("résumé.md", None),
    ("設計\u3000書.md", None),  # each of these may be the name of a file in a checkout
    ("at 10.04\u202fPM.md", None),
    ("\ue000.md", None),
    ("no/such/file", None),
    ("in/main.py", None),
    ("in.txt", None),
    ("dangling", None),
    (".env.example", None),
    (".github/ci.yml", None),
    ("d/link/y.py", None),
    ("../repo/a.txt", None),
    ("up/repo/a.txt", None),
    ("/etc/passwd", OUTSIDE),
    ("//etc/passwd", OUTSIDE),
    ("/", OUTSIDE),
    ("..", OUTSIDE),
    ("../outside/secret.txt", OUTSIDE),
    ("src/../../outside/secret.txt", OUTSIDE),
    ("TOP/outside/secret.txt", OUTSIDE),
    ("TOP/repo-too/secret.txt", OUTSIDE),
    ("ROOT-too/secret.txt", OUTSIDE),
    ("ROOT/../outside/secret.txt", OUTSIDE),
    ("up", OUTSIDE),
    ("up/outside/secret.txt", OUTSIDE),
    ("out/secret.txt", OUTSIDE),
    ("out.txt", OUTSIDE),
    ("absolute/secret.txt", OUTSIDE),
    ("chain/secret.txt", OUTSIDE),
    ("in/../../outside/secret.txt", OUTSIDE),
    ("disk/etc/passwd", OUTSIDE),
    ("proc/etc/passwd", OUTSIDE),
    ("/proc/self/root/etc/passwd", OUTSIDE),
    ("/proc/self/cwd/a.txt", OUTSIDE),
    ("/proc/self/environ", OUTSIDE),
    ("/dev/stdin", OUTSIDE),
    ("dangling-out", OUTSIDE),
    ("d/link/../x", OUTSIDE),
    ("d/link/../x/secret.txt", OUTSIDE),
    ("loop/x", "no place that can be told"),
    (".env", KEPT_OUT),
    ("sub/.env", KEPT_OUT),
    ("ROOT/.git/config", KEPT_OUT),
    (".GIT/config", KEPT_OUT),
    ("sub/.git", KEPT_OUT),
    ("git/config", KEPT_OUT),
    ("~", HOME),
    ("~/x", HOME),
    ("~root/.ssh/id_rsa", HOME),
    (" /etc/passwd", ODD),
    ("a.txt ", ODD),
    ("a.txt\n/etc/passwd", ODD),
    ("a.txt\x00", ODD),
    ("\u202ea.txt", ODD),
    ("\ud800", ODD),
    ("x" * (MOST_CHARACTERS + 1), "too long"),
]

PATTERNS: list[tuple[str, str | None]] = [
    ("**/*", None),
    ("*.py", None),
    ("src/**/*.py", None),
    ("ROOT/src/**", None),
    ("*.{js,ts,tsx}", None),
    ("{src,other}/**/*.{py,md}", None),
    ("{src/{deep,none},other}/*", None),
    ("!*.md", None),
    ("**/[a-z]*.py", None),
    ("in/*.py", None),
    ("file{1..3}.txt", None),
    ("*~", None),
    ("/etc/*", OUTSIDE),
    ("/*", OUTSIDE),
    ("/**", OUTSIDE),
    ("ROOT-too/*", OUTSIDE),
    ("out/*", OUTSIDE),
    ("chain/**", OUTSIDE),
    ("disk/etc/*", OUTSIDE),
    ("proc/**", OUTSIDE),
    ("up/*", OUTSIDE),
    ("/proc/self/root/etc/*", OUTSIDE),
    ("{/etc,src}/*", OUTSIDE),
    ("{src,{a,/etc}}/passwd", OUTSIDE),
    ("{a,out}/*", OUTSIDE),
    ("o{u}t/*", OUTSIDE),
    ("o{ut,x}/secret.txt", OUTSIDE),
    ("!/etc/*", OUTSIDE),
    ("../*", UP),
    ("src/../../*", UP),
    ("**/../*", UP),
    ("*/../../outside/*", UP),
    ("{..,src}/*", UP),
    ("{.,x}{.,y}/*", UP),
    ("{src,../outside}/*", UP),
    ("!../*", UP),
    ("!!../*", UP),
    ("~/*", HOME),
    ("{~,src}/*", HOME),
    ("!~/x", HOME),
    (".git/*", KEPT_OUT),
    ("**/.git/config", KEPT_OUT),
    ("**/.env", KEPT_OUT),
    ("**/.e{nv,x}", KEPT_OUT),
    ("git/*", KEPT_OUT),
    ("src\\*", "a backslash"),
    (" /etc/*", ODD),
    ("a\n/etc/*", ODD),
    ("{a,b", BRACES),
    ("a}/*", BRACES),
    ("{a,b}" * 10, BRACES),
    ("{a,b}" * 9 + "/a" * 100, BRACES),
    ("*" * (MOST_CHARACTERS + 1), "too long"),
]

GREP_GLOBS: list[tuple[str, str | None]] = [
    ("*.py *.md", None),
    ("*.py,*.md", None),
    ("src/*.{py,md} other/*", None),
    ("*.py /etc/*", OUTSIDE),
    ("*.py,/etc/*", OUTSIDE),
    ("*.py, out/*", OUTSIDE),
    ("*.py ../*", UP),
    ("*.{py,md},../*", UP),
    ("*.py ~/x", HOME),
    ("*.py,.env", KEPT_OUT),
]


@pytest.mark.parametrize("tool_and_field", ["Read.file_path", "Glob.path", "Grep.path"])
@pytest.mark.parametrize(("path", "reason"), PATHS)
def test_paths(repo: Path, tool_and_field: str, path: str, reason: str | None) -> None:
    """A path passes if it is in the checkout whichever way it is read."""
    tool, field = tool_and_field.split(".")
    assert (
        verdict(repo, tool, {"pattern": "**/*", field: path} if tool != "Read" else {field: path})
        == reason
    )


@pytest.mark.parametrize(("pattern", "reason"), PATTERNS)
def test_patterns(repo: Path, pattern: str, reason: str | None) -> None:
    """A pattern passes if each of its readings begins in the checkout."""
    assert verdict(repo, "Glob", {"pattern": pattern}) == reason
    assert verdict(repo, "Grep", {"pattern": "x", "glob": pattern}) == reason


@pytest.mark.parametrize(("globs", "reason"), GREP_GLOBS)
def test_globs_of_grep_are_split(repo: Path, globs: str, reason: str | None) -> None:
    """At spaces, and at commas that are out of braces."""
    assert verdict(repo, "Grep", {"pattern": "x", "glob": globs}) == reason


@pytest.mark.parametrize(
    ("tool", "fields", "reason"),
    [
        ("Bash", {"command": "id"}, "no such tool"),
        ("Write", {"file_path": "a.txt", "content": ""}, "no such tool"),
        ("WebFetch", {"url": "http://127.0.0.1/"}, "no such tool"),
        ("read", {"file_path": "a.txt"}, "no such tool"),
        ("Read", {"file_path": "a.txt", "path": "/etc"}, "no such field"),
        ("Read", {"notebook_path": "/etc/passwd"}, "no such field"),
        ("Glob", {"pattern": "*", "glob": "/etc/*"}, "no such field"),
        ("Grep", {"pattern": "x", "paths": ["/etc"]}, "no such field"),
        ("Read", {"file_path": ["a.txt"]}, "no text"),
        ("Read", {"file_path": None}, "no text"),
        ("Glob", {"pattern": 7}, "no text"),
        ("Grep", {"pattern": "x", "glob": {"a": 1}}, "no text"),
        ("Read", {"file_path": "a.txt", "offset": 1, "limit": 5, "pages": "1-2"}, None),
        ("Grep", {"pattern": "../|/etc/passwd|~/|{", "type": "py", "-n": True, "-A": 3}, None),
        ("Grep", {"pattern": "x", "output_mode": "content", "head_limit": 0}, None),
        ("Glob", {"pattern": "link/*", "path": "d"}, None),
        ("Glob", {"pattern": "x/*", "path": "d"}, OUTSIDE),
        ("Grep", {"pattern": "canary", "path": "d", "glob": "x/secret.txt"}, OUTSIDE),
        ("Glob", {"pattern": "out/*", "path": "up/repo"}, OUTSIDE),
    ],
)
def test_calls(repo: Path, tool: str, fields: dict[str, object], reason: str | None) -> None:
    """What is unknown is denied, and a pattern is seen from the folder that the call names."""
    assert verdict(repo, tool, fields) == reason


def test_denial_repeats_no_words_of_the_model(repo: Path) -> None:
    """Names alone: the rest may be shown to people."""
    found = judge("<img src=x>", {}, repo)
    assert found is not None
    assert (found.tool, found.field) == ("unknown", "")
    found = judge("Read", {"@everyone look": 1}, repo)
    assert found is not None
    assert (found.tool, found.field) == ("Read", "unknown")
    assert [plain(name) for name in ("WebFetch", "-n", "mcp__x", "a b", "x" * 41)] == [
        *("WebFetch", "-n", "mcp__x", "unknown", "unknown")
    ]


def test_braces_are_expanded_innermost_first() -> None:
    """As a shell would, in some order, some of them twice."""
    assert set(expanded("a{b,c{d,e}}f") or []) == {"abf", "acdf", "acef"}
    assert expanded("{}") == [""]
    assert expanded("{a,b}" * 9) is not None
    assert expanded("{" + ",".join("x" * MOST_PIECES) + "}") is not None
    assert expanded("{" + ",".join("x" * (MOST_PIECES + 1)) + "}") is None
    assert expanded("{a,b}" * 9 + "{a}" * 400) is None


@pytest.mark.anyio
async def test_hook_denies_or_has_no_opinion(repo: Path) -> None:
    """It never allows, blocks when it fails, and meets no tool but the three."""
    denied: dict[str, Denial] = {}
    matcher = gate(repo, denied.__setitem__)
    assert (matcher.matcher, matcher.on_failure) == ("Read|Grep|Glob", "block")
    (hook,) = matcher.hooks

    async def said(call: str, path: object) -> HookJSONOutput:
        given = {"hook_event_name": "PreToolUse", "tool_name": "Read"}
        fields = {"tool_input": {"file_path": path}}
        return await hook(cast("HookInput", {**given, **fields}), call, {"signal": None})

    assert await said("1", "a.txt") == {}
    assert await said("2", "/etc/passwd") == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "Read.file_path: outside the repository",
        }
    }
    assert denied == {"2": Denial("Read", "file_path", OUTSIDE)}
