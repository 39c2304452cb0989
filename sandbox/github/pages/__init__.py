"""The pages for people: `/`, `/OWNER/NAME/issues`, `/OWNER/NAME/issues/N`."""

from __future__ import annotations

from sandbox.github.pages.site import page

__all__ = ["page"]
