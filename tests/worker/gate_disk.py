"""A checkout with every kind of link, for the tests of the gate."""

from pathlib import Path


def make_repo(top: Path) -> Path:
    """``repo`` below a folder, beside others that are none of its business."""
    root = top / "repo"
    for name in (
        *(
            "a.txt",
            "with space.txt",
            "résumé.md",
            "src/main.py",
            "src/deep/x.py",
            "other/deep/y.py",
        ),
        *(".env", "sub/.env", ".env.example", ".git/config", "sub/.git", ".github/ci.yml", "d/z"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    for name in ("outside/secret.txt", "repo-too/secret.txt"):
        (top / name).parent.mkdir()
        (top / name).write_text("canary")
    for name, to in {
        "in": "src",
        "in.txt": "a.txt",
        "up": "..",
        "out": "../outside",
        "out.txt": "../outside/secret.txt",
        "absolute": str(top / "outside"),
        "disk": "/",
        "proc": "/proc/self/root",
        "loop": "loop",
        "chain": "out",
        "git": ".git",
        "dangling": "nowhere",
        "dangling-out": "../outside/nowhere",
        "d/link": "../other/deep",
        "d/x": "../../outside",
    }.items():
        (root / name).symlink_to(to)
    return root
