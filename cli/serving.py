"""``retriage web``, ``worker`` and ``clock``: the processes, which share one Redis."""

import os

from cli.failures import CommandError


def serve_web() -> int:
    """Receive webhooks until SIGTERM."""
    _shared()
    from bot.__main__ import main

    return main(["web"])


def serve_worker() -> int:
    """Run jobs until SIGTERM."""
    _shared()
    from worker.__main__ import main

    return main()


def serve_clock() -> int:
    """Tick until SIGTERM."""
    _shared()
    from bot.__main__ import main

    return main(["clock"])


def _shared() -> None:
    """The embedded server belongs to one process: these three need one that all can reach."""
    if not os.environ.get("REDIS_URL"):
        raise CommandError(
            "REDIS_URL is missing: web, worker and clock share one Redis, and it names it"
        )
