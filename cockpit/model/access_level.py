"""How much of a user's rights one session has: all of them, those of an ordinary user, or reading alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from cockpit.model.operations import Right, Style

if TYPE_CHECKING:
    from cockpit.model.operations import Operation


class AccessLevel(StrEnum):
    """The rights of a session. It never has more than its user."""

    READ = "read"
    """It sees what an ordinary user sees, and changes nothing."""
    OWN = "own"
    """It may do what its user may do as an ordinary user: with their own jobs and those shared with them."""
    ADMIN = "admin"
    """It has all rights of its user, also an administrator's."""


ACCESS_VARIABLE = "COCKPIT_ACCESS"
"""The environment variable with the level of a session; without it a process has all rights of its user."""


def is_level(text: str) -> bool:
    """Return whether the text names a level."""
    return text in set(AccessLevel)


def why_not(level: str, operation: Operation) -> str:
    """Return why a session of this level may not use the operation, as a sentence; empty: it may.

    Whether the user may use it is another question. An unknown level may nothing that `read` may not.
    """
    if level in {"", AccessLevel.ADMIN}:
        return ""
    if operation.right is Right.ADMINISTER:
        return f"This session has the access level {_shown(level)}; {operation.name} needs `admin`."
    if level == AccessLevel.OWN:
        return ""
    if operation.style is Style.CHANGES or operation.right is Right.ACT:
        return f"This session has the access level {_shown(level)}, which changes nothing; log in with another key."
    return ""


def _shown(level: str) -> str:
    # The text comes from another process and stands in a message.
    return f"`{level}`" if is_level(level) else "`read`"
