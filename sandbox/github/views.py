"""The views whose staleness can be set, one by one: GitHub's lag apart from each other."""

from __future__ import annotations

from enum import StrEnum


class View(StrEnum):
    ISSUE = "issue"  # one issue, and its labels
    COMMENT = "comment"  # one comment by id
    ISSUE_COMMENTS = "issue_comments"
    REPOSITORY_COMMENTS = "repository_comments"
    ISSUES = "issues"  # the issue listing
    ISSUES_BY_CREATOR = "issues_by_creator"  # the same with ?creator=
    EVENTS = "events"  # events and timeline
