"""``retriage web``, ``worker`` and ``clock``: the processes, which share one Redis."""

import os

from cli.failures import Code, CommandError, out_of_reach


def serve_web() -> int:
    """Receive webhooks until SIGTERM."""
    _shared()
    from bot.__main__ import main

    return main(["web"])


def serve_worker() -> int:
    """Run jobs until SIGTERM."""
    _shared()
    from redis.exceptions import RedisError

    from worker.__main__ import main

    try:
        return main()
    except RedisError as error:
        raise CommandError(out_of_reach(error), code=Code.FAILED) from error


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
