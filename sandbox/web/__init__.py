"""A small web on loopback: pages, feeds and release lists, and everything that can be wrong with
one. It keeps a log of what it was asked.
"""

from sandbox.web.answers import (
    Answer,
    Bomb,
    Cut,
    Drip,
    Endless,
    Hang,
    Headless,
    Page,
    Redirect,
    WrongLength,
)
from sandbox.web.certificate import Certificate, certificate
from sandbox.web.server import WebServer
from sandbox.web.site import Asked, Site

__all__ = [
    "Answer",
    "Asked",
    "Bomb",
    "Certificate",
    "Cut",
    "Drip",
    "Endless",
    "Hang",
    "Headless",
    "Page",
    "Redirect",
    "Site",
    "WebServer",
    "WrongLength",
    "certificate",
]
