"""A GitHub on loopback: a stateful world behind GitHub's REST API, which can fail on demand."""

from __future__ import annotations

from sandbox.github.core import GitHub
from sandbox.github.faults import Fault
from sandbox.github.keys import new_private_key
from sandbox.github.wire import Drop, Hang, Outcome, Request, Respond, settle

__all__ = [
    "Drop",
    "Fault",
    "GitHub",
    "Hang",
    "Outcome",
    "Request",
    "Respond",
    "new_private_key",
    "settle",
]
