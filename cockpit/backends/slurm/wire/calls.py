"""What is asked of a way in: run this argument vector, within this time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cockpit.backends.base import ShellSession
from cockpit.errors import CockpitError, Unreachable
from cockpit.model.asking import ShellRequest

PIECE, MOST_BYTES = 1 << 16, 512 << 20
"""A program that prints more than any cluster could is not listened to."""
STALLED = (
    "Zero Bytes were transmitted",
    "Unable to contact slurm controller",
    "Unable to contact slurmdbd",
    "Connection refused",
    "Socket timed out",
    "Connection timed out",
    "Connection reset by peer",
    "Could not establish a configuration source",
)
"""What commands say on stderr when nobody answered them."""
_SENT = (STALLED[0], "Socket timed out", "Connection timed out", "Connection reset by peer")
"""Those of them that are said after the controller may have been told."""
PASSING = STALLED[0]
"""Said while the controller reads its configuration anew: the next moment it answers."""


class Printed(NamedTuple):
    """What a program left."""

    stdout: str
    stderr: str
    code: int
    separator: str = ""
    """What stood for the separator of its fields."""
    verified: bool = False
    """The way in knows that nothing is missing, and the text is made by it: it is not examined again."""


class Garbled(Unreachable):
    """A command ended well and printed something else than its whole answer, which therefore says nothing."""

    def __init__(self, program: str, flaw: str) -> None:
        super().__init__(f"The answer of {program} is not whole: {flaw}. Nothing of it is shown; run it by hand.")


class Unanswered(Unreachable):
    """The program began and its answer never came: whether it did anything is not known."""


class Failed(CockpitError):
    """A command said no; its text is what it said."""

    def __init__(self, printed: Printed, argv: Sequence[str]) -> None:
        self.printed, self.argv = printed, tuple(argv)
        super().__init__(complaint(printed) or f"{argv[0]} ended with {printed.code} and said nothing.")


class Commands(Protocol):
    """A way to Slurm's commands."""

    name: str
    """What a person calls this way: `this machine`, `ann@login`."""
    on_this_disk: bool
    """Its programs see the files of this machine, and begin in the user's current folder."""

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        """Whatever the exit code. `reading`: its times are to be in UTC. Raises `Unreachable` where the program cannot
        be run, prints without end or takes longer than `seconds`; then it is ended."""
        ...

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        """What an act really runs, to be looked at before. Raises `RequestRefused` where this way cannot do it."""
        ...

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        """The program with a terminal of its own, or with pipes."""
        ...

    async def close(self) -> None: ...


class Stream(Protocol):
    """What a program prints, as asyncio and asyncssh give it."""

    async def read(self, size: int, /) -> bytes: ...


async def all_of(stream: Stream, program: str) -> bytes:
    """To its end. Raises `Unreachable` where there is none."""
    pieces, size = [], 0
    while piece := await stream.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise Unreachable(f"{program} prints without end; it was ended after {MOST_BYTES >> 20} MiB.")
    return b"".join(pieces)


def complaint(printed: Printed) -> str:
    """The last lines of what it said on stderr, without the program's own name before each."""
    lines = [each.strip() for each in printed.stderr.splitlines() if each.strip()]
    return " ".join(each.partition("error: ")[2] or each for each in lines[-3:])


def command_of(argv: Sequence[str]) -> str:
    """What a person calls the question: `scontrol show licenses`, `sprio`."""
    words = [word for word in argv[1:] if word.isalpha()] if argv[0] in {"scontrol", "sacctmgr"} else []
    return " ".join([argv[0], *words[:2]])


def checked(printed: Printed, argv: Sequence[str]) -> Printed:
    """Raises `Unreachable` where the command got no answer or was killed, `Failed` where it was refused."""
    if printed.code == 0:
        return printed
    if any(words in printed.stderr for words in STALLED):
        error = Unanswered if any(words in printed.stderr for words in _SENT) else Unreachable
        raise error(f"Slurm does not answer {argv[0]}: {complaint(printed)}")
    if printed.code < 0 or (printed.code > 128 and not complaint(printed)):
        raise Unanswered(f"{argv[0]} was killed before it had answered (exit code {printed.code}).")
    raise Failed(printed, argv)
