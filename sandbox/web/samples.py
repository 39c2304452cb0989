"""Documents as a watch meets them: one list of releases as a feed, as JSON, and as a page."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sandbox.web.answers import Page


@dataclass(frozen=True)
class Release:
    """One release. ``notes`` is plain text; it may be anything, a trap too."""

    version: str
    at: dt.datetime
    notes: str = ""


def feed(title: str, releases: Sequence[Release], *, site: str = "https://a.example") -> Page:
    """An Atom feed, newest first."""
    entries = "".join(
        f"<entry><id>{escape(site)}/releases/{escape(each.version)}</id>"
        f"<title>{escape(each.version)}</title><updated>{each.at.isoformat()}</updated>"
        f'<content type="text">{escape(each.notes)}</content></entry>'
        for each in _newest(releases)
    )
    return Page(
        '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>{escape(site)}/releases</id><title>{escape(title)}</title>{entries}</feed>",
        "application/atom+xml; charset=utf-8",
    )


def release_list(releases: Sequence[Release]) -> Page:
    """JSON, in the form in which GitHub lists releases; newest first."""
    shown = [
        {
            "tag_name": each.version,
            "name": each.version,
            "published_at": each.at.isoformat(),
            "body": each.notes,
        }
        for each in _newest(releases)
    ]
    return Page(json.dumps(shown), "application/json; charset=utf-8")


def page(title: str, releases: Sequence[Release]) -> Page:
    """HTML for people, newest first."""
    sections = "".join(
        f"<section><h2>{escape(each.version)}</h2><time>{each.at.date()}</time>"
        f"<p>{escape(each.notes)}</p></section>"
        for each in _newest(releases)
    )
    return Page(
        f'<!doctype html><html lang="en"><title>{escape(title)}</title>'
        f"<h1>{escape(title)}</h1>{sections}</html>"
    )


def _newest(releases: Sequence[Release]) -> list[Release]:
    return sorted(releases, key=lambda each: each.at, reverse=True)
