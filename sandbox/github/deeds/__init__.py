"""What can happen in the world. Each deed changes the state, records GitHub's event, moves
`updated_at` and tells the listeners. Who may do it is decided elsewhere.
"""

from __future__ import annotations

from sandbox.github.deeds.comments import delete_comment, edit_comment, post_comment, react
from sandbox.github.deeds.doer import Doer, current
from sandbox.github.deeds.issues import (
    close_issue,
    create_issue,
    delete_issue,
    edit_issue,
    lock_issue,
    reopen_issue,
    transfer_issue,
    unlock_issue,
)
from sandbox.github.deeds.labels import (
    add_labels,
    create_label,
    delete_label,
    edit_label,
    find_or_make_label,
    remove_labels,
    set_labels,
)
from sandbox.github.deeds.repositories import (
    archive_repository,
    delete_repository,
    make_private,
    rename_repository,
)

MOST_LABELS = 100
LONGEST_BODY = 65_536

__all__ = [
    "LONGEST_BODY",
    "MOST_LABELS",
    "Doer",
    "add_labels",
    "archive_repository",
    "close_issue",
    "create_issue",
    "create_label",
    "current",
    "delete_comment",
    "delete_issue",
    "delete_label",
    "delete_repository",
    "edit_comment",
    "edit_issue",
    "edit_label",
    "find_or_make_label",
    "lock_issue",
    "make_private",
    "post_comment",
    "react",
    "remove_labels",
    "rename_repository",
    "reopen_issue",
    "set_labels",
    "transfer_issue",
    "unlock_issue",
]
