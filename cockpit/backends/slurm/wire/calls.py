"""The interface of a transport that runs Slurm's commands, and the errors by which a command can fail.

Transports: local processes (`local`), SSH (`ssh`, `openssh`), slurmrestd (`rest`) and recorded output (`recorded`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from cockpit.backends.base import ShellSession
from cockpit.backends.slurm.mapping.records import Record, records_of_key, settings, with_header
from cockpit.errors import CockpitError, Unreachable
from cockpit.model.asking import ShellRequest

NOTHING_ABSENT: Mapping[str, str] = MappingProxyType({})
"""`Commands.absent` of transports that run Slurm's own commands."""
PIECE, MOST_BYTES = 1 << 16, 512 << 20
"""Bytes that are read at a time, and the most that a program may print: more than any cluster needs."""
STALLED = (
    "Zero Bytes were transmitted",
    "Unable to contact slurm controller",
    "Unable to contact slurmdbd",
    "Connection refused",
    "Socket timed out",
    "Connection timed out",
    "Connection reset by peer",
    "Could not establish a configuration source",
    "Unable to process configuration file",
    "Unable to establish control",
    "Munge encode failed",
    "Munge decode failed",
    "Protocol authentication error",
)
"""Parts of the messages on stderr of commands that got no answer from slurmctld or slurmdbd, or could not ask them: the
configuration cannot be read, a host name is unknown, munge does not run, or the clocks differ."""
_SENT = (STALLED[0], "Socket timed out", "Connection timed out", "Connection reset by peer")
"""Messages of `STALLED` that appear after the request was sent: the controller may have acted on it."""
PASSING = STALLED[0]
"""Message of `STALLED` that appears while the controller rereads its configuration: a retry soon succeeds."""


class Printed(NamedTuple):
    """Output and exit code of a program."""

    stdout: str
    stderr: str
    code: int
    separator: str = ""
    """Field separator that was used in place of `listing.SEPARATOR`."""
    verified: bool = False
    """The transport produced the answer itself and knows that it is complete: it needs no further check."""
    records: tuple[Record, ...] | None = None
    """The records of the answer where the transport has them (slurmrestd), with an empty `stdout`; None: they have to
    be read from the text."""

    def blocks(self, key: str) -> Iterable[Record]:
        """Return the records of `scontrol show`, which begin with `key=`."""
        return self.records if self.records is not None else records_of_key(self.stdout, key)

    def rows(self) -> Iterable[Record]:
        """Return the rows of a table of sacctmgr or sshare."""
        return self.records if self.records is not None else with_header(self.stdout)

    def settings(self) -> Record:
        """Return the settings of `scontrol show config`."""
        return self.records[0] if self.records else settings(self.stdout)


class Garbled(Unreachable):
    """A command ended with exit code 0 but its output is incomplete or not its own, so nothing of it can be used."""

    def __init__(self, program: str, flaw: str) -> None:
        super().__init__(f"The answer of {program} is not whole: {flaw}. Nothing of it is shown; run it by hand.")


class AnswerLost(Unreachable):
    """The program started but its answer never came: whether it took effect is unknown."""


class Failed(CockpitError):
    """A command refused the request; the error text is its message on stderr, else on stdout."""

    def __init__(self, printed: Printed, argv: Sequence[str]) -> None:
        self.printed, self.argv = printed, tuple(argv)
        # sacctmgr says on stdout that it did nothing.
        said = complaint(printed) or complaint(printed._replace(stderr=printed.stdout))
        super().__init__(said or f"{argv[0]} ended with {printed.code} and said nothing.")


DATABASE_PROGRAMS: Final = frozenset({"sacct", "sacctmgr"})
"""Programs of Slurm that ask slurmdbd; sshare and sprio ask the controller."""


class Commands(Protocol):
    """A transport that runs Slurm's commands."""

    name: str
    """Name of the transport for the user: `this machine`, `ann@login`."""
    on_this_disk: bool
    """Its programs see the files of this machine, and start in the user's current folder."""

    @property
    def database_programs(self) -> Collection[str]:
        """Programs whose answers come from the accounting database (slurmdbd), which may be away."""
        ...

    @property
    def absent(self) -> Mapping[str, str]:
        """Operations and abilities that this way to the cluster lacks, each with the reason and another way."""
        ...

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        """Run a command and return its output, whatever its exit code.

        `reading`: the command only reads, and prints times in UTC; False for a command that changes something.
        Raises `Unreachable` when the program cannot be run, prints more than `MOST_BYTES` or takes longer than
        `seconds`; the program is then killed.
        """
        ...

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        """Return the command that really runs for `argv`, to show it to the user beforehand.

        Raises `RequestRefused` when this transport cannot do it.
        """
        ...

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        """Start the program with a terminal of its own, or with pipes."""
        ...

    async def close(self) -> None: ...


class Stream(Protocol):
    """Output of a program: the part of asyncio's and asyncssh's readers that is used here."""

    async def read(self, size: int, /) -> bytes: ...


async def all_of(stream: Stream, program: str) -> bytes:
    """Read a program's output to its end. Raises `Unreachable` when it exceeds `MOST_BYTES`."""
    pieces, size = [], 0
    while piece := await stream.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise Unreachable(f"{program} prints without end; it was ended after {MOST_BYTES >> 20} MiB.")
    return b"".join(pieces)


def complaint(printed: Printed) -> str:
    """Return the last three lines of stderr as one, each without the leading `program: error: `."""
    lines = [each.strip() for each in printed.stderr.splitlines() if each.strip()]
    if munge := [each for each in lines if "Munge" in each]:  # the lines behind it tell of its consequences
        lines = munge[:1]
    return " ".join(each.partition("error: ")[2] or each for each in lines[-3:])


def command_of(argv: Sequence[str]) -> str:
    """Return the command's name for messages: `scontrol show licenses`, `sprio`."""
    # Only these two have subcommands; for the others the words are values of options, which would put a job's data into
    # a message.
    words = [word for word in argv[1:] if word.isalpha()] if argv[0] in {"scontrol", "sacctmgr"} else []
    return " ".join([argv[0], *words[:2]])


def check_success(printed: Printed, argv: Sequence[str]) -> Printed:
    """Return the output of a command that succeeded.

    Raises `Unreachable` when it got no answer, `AnswerLost` when it may have taken effect all the same, and `Failed`
    when Slurm refused it.
    """
    if printed.code == 0:
        return printed
    # A code above 128 is also how a shell or ssh reports a signal; a program that explains itself was not killed.
    # Slurm's commands exit with 1 whether the controller refused or was silent: only the message tells these apart.
    if any(words in printed.stderr for words in STALLED):
        error = AnswerLost if any(words in printed.stderr for words in _SENT) else Unreachable
        raise error(f"Slurm does not answer {argv[0]}: {complaint(printed)}")
    if printed.code < 0 or (printed.code > 128 and not complaint(printed)):
        raise AnswerLost(f"{argv[0]} was killed before it had answered (exit code {printed.code}).")
    raise Failed(printed, argv)
