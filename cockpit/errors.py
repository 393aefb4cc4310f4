"""The exceptions that cockpit raises on purpose.

    CockpitError                 anything that users should read as a sentence, never as a traceback
    ├── SpecErrors               a job or cluster file is wrong: all errors with their paths
    ├── Unreachable              the engine or cluster does not answer
    │   ├── ProtocolMismatch     it answers, in another protocol
    │   └── LoginLost            the login that the user typed ended and must be typed again
    ├── MayBeAccepted            a change was sent, and whether it was accepted is not known
    ├── RequestRefused           the engine understood and said no (carries the Refusal)
    ├── NotRun                   the user saw the command of a change, and it was not run
    ├── StoreError               the journal cannot be read or written
    └── RuntimeMissing           this machine lacks what containers need

Expected refusals inside the core are values (`model.refusal.Refusal`); `RequestRefused` wraps one where it leaves the
core towards a user. Every text says what, why, and what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.refusal import Refusal


class CockpitError(Exception):
    """Base of all; its text is one or more plain sentences for users."""


class SpecErrors(CockpitError):
    """A file is wrong. `errors` holds one sentence per wrong field, each beginning with its path."""

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(self.errors))


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a text file could not be read, to follow its name: `cannot be read: Permission denied`."""
    return "is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else f"cannot be read: {error.strerror}"


class Unreachable(CockpitError):
    """The engine or cluster does not answer."""


class ProtocolMismatch(Unreachable):
    """The engine speaks another major protocol version."""


class LoginLost(Unreachable):
    """The connection for which the user typed a login was lost, and the keys of this machine do not suffice.

    `host` is the name to log in to.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"Log in to {host} again: the connection for which you typed the login was lost. Type :login in an open "
            "cockpit, or run the command again at a terminal."
        )


class MayBeAccepted(CockpitError):
    """A change was sent to the cluster and its answer never came."""

    def __init__(self, why: str, request: str = "", advice: str = "") -> None:
        """`request`: its id; the part before a `#` is the id of the whole command, see `model/requests.py`. `advice`:
        what to do where that is something else than to look the request up and to repeat the command."""
        self.request = request
        super().__init__(
            f"{why}\nThe request may have been accepted. "
            + (
                advice
                or f"See what became of it: `cockpit jobs --request {request}`. "
                f"Repeating the command is safe with `--request-id {request.partition('#')[0]}`."
            )
        )


class RequestRefused(CockpitError):
    """The engine said no."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


class NotRun(CockpitError):
    """The user saw the command of a change beforehand, and did not confirm it."""

    def __init__(self) -> None:
        super().__init__("Nothing was run.")


class StoreError(CockpitError):
    """The journal cannot be read or written; nothing was accepted."""

    def __init__(self, text: str, *, passing: bool = False) -> None:
        """`passing`: the error ends by itself once there is free space, or another process releases a lock."""
        self.passing = passing
        super().__init__(text)


class RuntimeMissing(CockpitError):
    """This machine lacks something that contained jobs need."""
