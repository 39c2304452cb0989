"""The web's own addresses, for a test or a person in another process.

``PUT /_sandbox/pages`` with ``{"target", "body", "media_type", "status"}``, ``DELETE`` with
``{"target"}``; ``GET`` and ``DELETE /_sandbox/requests``. What is not understood is a 422.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from sandbox.web.answers import Page
from sandbox.web.site import Site

PREFIX = "/_sandbox/"
_JSON = "application/json"
_DONE = Page("{}", _JSON)


def control(site: Site, method: str, path: str, body: bytes) -> Page:
    """Does what is asked; ``path`` is what follows PREFIX."""
    match method, path:
        case "GET", "requests":
            return Page(json.dumps([asdict(each) for each in site.asked()]), _JSON)
        case "DELETE", "requests":
            site.forget()
            return _DONE
        case (("PUT" | "DELETE"), "pages"):
            return _pages(site, method, body)
        case _:
            return Page("{}", _JSON, status=404)


def _pages(site: Site, method: str, body: bytes) -> Page:
    try:
        fields = json.loads(body)
        target = fields.pop("target")
        page = Page(**fields)
        if not isinstance(target, str):
            raise TypeError(target)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Page("{}", _JSON, status=422)
    if method == "PUT":
        site.put(target, page)
    else:
        site.remove(target)
    return _DONE
