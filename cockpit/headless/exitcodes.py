"""Exit codes of commands. docs/headless.md lists them; `wait` and `shell` return the job's own exit code."""

from __future__ import annotations

from enum import IntEnum

from cockpit.errors import (
    CockpitError,
    MayBeAccepted,
    NotRun,
    ProtocolMismatch,
    RequestRefused,
    RuntimeMissing,
    SpecErrors,
    StoreError,
    Unreachable,
)
from cockpit.model.refusal import RefusalKind


class ExitCode(IntEnum):
    """Exit codes of commands. Cockpit's own are 64–79; the others are those of shells and of `timeout`."""

    OK = 0
    # 64 to 77 are those of sysexits.h where one has the meaning. Small codes are left to the jobs, whose own codes
    # `wait` and `shell` return.
    USAGE = 64
    """The command line is wrong."""
    INVALID = 65
    """A job file, a filter or a value is wrong."""
    NOT_FOUND = 66
    """There is no such job, node or file."""
    CONFLICT = 67
    """The job's or node's state does not allow it: already ended, not held."""
    UNREACHABLE = 69
    """The engine or cluster does not answer."""
    INTERNAL = 70
    """A defect of cockpit."""
    DECLINED = 71
    """The user answered No; nothing was done."""
    MISSING = 72
    """This machine lacks something that the command needs."""
    UNCERTAIN = 73
    """A change was sent and no answer came: it may have been accepted."""
    STORE = 74
    """The journal is damaged or cannot be written."""
    UNAVAILABLE = 75
    """The request is impossible at present: the disk is full, the engine is stopping."""
    PROTOCOL = 76
    """The engine speaks another protocol version."""
    REFUSED = 77
    """The user lacks the right."""
    UNMET = 79
    """`play`: the screen was not as the script expects."""
    # As timeout(1) has it.
    TIMED_OUT = 124
    """`wait --timeout`: the job has not ended in time."""
    # 128 + SIGINT, as a shell reports it; the next one is 128 + SIGPIPE.
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """The reader of the output closed the pipe."""


OF_REFUSAL = {
    RefusalKind.INVALID: ExitCode.INVALID,
    RefusalKind.NOT_FOUND: ExitCode.NOT_FOUND,
    RefusalKind.DENIED: ExitCode.REFUSED,
    RefusalKind.CONFLICT: ExitCode.CONFLICT,
    RefusalKind.UNAVAILABLE: ExitCode.UNAVAILABLE,
}

OF_ERROR: tuple[tuple[type[CockpitError], ExitCode], ...] = (
    (SpecErrors, ExitCode.INVALID),
    (NotRun, ExitCode.DECLINED),
    # Before `Unreachable`, of which it is a kind.
    (ProtocolMismatch, ExitCode.PROTOCOL),
    (Unreachable, ExitCode.UNREACHABLE),
    (MayBeAccepted, ExitCode.UNCERTAIN),
    (StoreError, ExitCode.STORE),
    (RuntimeMissing, ExitCode.MISSING),
)
"""Exit codes by class of error; the first class that an error is an instance of counts."""


def exit_code_of(error: CockpitError) -> ExitCode:
    """Return the exit code of a command that ended with this error."""
    # Not in the table: its code depends on the kind of the refusal.
    if isinstance(error, RequestRefused):
        return ExitCode.STORE if error.refusal.store else OF_REFUSAL[error.refusal.kind]
    # Errors without a code of their own are about what the user gave: a filter, a file, a value.
    return next((code for kind, code in OF_ERROR if isinstance(error, kind)), ExitCode.INVALID)
