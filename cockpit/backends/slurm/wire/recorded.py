"""Answers Slurm's commands with the recorded output of a real cluster: `cockpit -c recorded:22.05`.

squeue and sacct print the fields that they are asked for, so their answers are put together from full recordings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from types import MappingProxyType

from cockpit.backends.base import ShellSession, refuse_absent
from cockpit.backends.slurm.mapping.records import blocks, with_header, words
from cockpit.backends.slurm.wire.calls import DATABASE_PROGRAMS, Printed
from cockpit.errors import SpecErrors, Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.capabilities import Ability
from cockpit.model.ids import Millis
from cockpit.model.operations import Style
from cockpit.protocol.operations import SHELL, TABLE
from cockpit.resources import fixture

FOLDER = "clusters/slurm"
FILES = ("stat", "sh")
"""Programs that read jobs' files, which were not recorded."""

_FILES = {
    ("scontrol", "show", "config"): "scontrol-config.txt",
    ("scontrol", "show", "partition"): "scontrol-part-o.txt",
    ("scontrol", "show", "node"): "scontrol-node-o.txt",
    ("scontrol", "show", "job"): "scontrol-job-d.txt",
    ("scontrol", "show", "reservation"): "scontrol-res.txt",
    ("scontrol", "ping"): "scontrol-ping.txt",
    ("scontrol", "show", "licenses"): "scontrol-lic.txt",
    ("sprio",): "sprio-pipe.txt",
    ("sshare",): "sshare.txt",
    ("sacctmgr", "list", "qos"): "sacctmgr-qos.txt",
    ("sacctmgr", "list", "assoc"): "sacctmgr-assoc.txt",
}
"""Recorded files by the words of the command, without its options."""

_KEYS = {
    "JobID": "JobId",
    "ArrayJobID": "ArrayJobId",
    "ArrayTaskID": "ArrayTaskId",
    "HetJobID": "HetJobId",
    "HetJobOffset": "HetJobOffset",
    "Name": "JobName",
    "State": "JobState",
    "PriorityLong": "Priority",
    "TimeUsed": "RunTime",
    "NumCPUs": "NumCPUs",
    "Feature": "Features",
    "ReqNodes": "ReqNodeList",
    "exit_code": "ExitCode",
    "RestartCnt": "Restarts",
    "STDOUT": "StdOut",
    "STDERR": "StdErr",
    "tres-per-node": "TresPerNode",
    "tres-per-job": "TresPerJob",
    "tres-per-task": "TresPerTask",
}
"""scontrol's names of squeue's fields, where they differ."""


RECORDING = "This is the recording of a cluster: nothing can be changed in it."
ABSENT = MappingProxyType(
    {
        **{name: RECORDING for name, row in TABLE.items() if row.style is Style.CHANGES},
        **dict.fromkeys((Ability.SIGNALS, Ability.UPDATE, Ability.TOP), RECORDING),
        SHELL: "This is the recording of a cluster: it has no containers to open a shell in.",
    }
)


class RecordedCommands:
    """Answers from a recording; implements `wire.calls.Commands`. Commands that change something are refused."""

    on_this_disk = False
    database_programs = DATABASE_PROGRAMS
    absent = ABSENT

    def __init__(self, version: str) -> None:
        self.name = f"recorded {version}"
        if version not in (known := sorted(recordings())):
            raise SpecErrors([f"recorded: there is no recording of {version}; there are {', '.join(known)}."])
        self._folder = fixture(f"{FOLDER}/{version}")

    @property
    def recorded_at(self) -> Millis:
        """Time of the recording."""
        return Millis(1000 * int(self._text("capture-epoch").split()[0]))

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        del seconds, stdin
        if not reading:
            refuse_absent(RECORDING)
        # For `logs` any failure but a denied permission means that there is no such file.
        if argv[0] in FILES:
            return Printed("", "No such file or directory", 1)
        # Verified: its lists of squeue and sacct have no heading, by which `completeness` would know them.
        return Printed(self._printed(argv), "", 0, verified=True)

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        del stdin
        return tuple(argv)

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        del argv, request
        refuse_absent(ABSENT[SHELL])

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _printed(self, argv: Sequence[str]) -> str:
        """Return what a command would print. Raises `Unreachable` if it was not recorded."""
        plain = tuple(word for word in argv if not word.startswith("-"))
        if argv[0] == "squeue":
            return "".join(self._jobs(argv))
        if argv[0] == "sacct":
            return "".join(self._print_ended(argv))
        # Not recorded. sacctmgr prints nothing for a user whom accounting does not know, who is no administrator then.
        if plain[:3] == ("sacctmgr", "list", "user"):
            return ""
        file = next((name for lead, name in _FILES.items() if plain[: len(lead)] == lead), None)
        if file is None:
            raise Unreachable(f"The recording has no {' '.join(argv[:2])}.")
        return self._text(file)

    def _jobs(self, argv: Sequence[str]) -> Iterator[str]:
        """Yield squeue's lines, put together from the recorded `scontrol show job`."""
        fields = [each.partition(":")[::2] for each in _option(argv, "--Format").split(",")]
        wanted = _option(argv, "--jobs")
        for block in blocks(self._text("scontrol-job-d.txt"), "JobId"):
            record = words(block)
            # Slurm lists a whole array or heterogeneous job by its own id.
            if not wanted or wanted in {record["JobId"], _of_array(record), *_whole_jobs(record)}:
                yield "".join(f"{_value(record, name)}{separator}" for name, separator in fields) + "\n"

    def _print_ended(self, argv: Sequence[str]) -> Iterator[str]:
        """Yield sacct's lines with the fields that `argv` asks for."""
        fields, separator = _option(argv, "--format").split(","), _option(argv, "--delimiter")
        wanted = _option(argv, "--jobs")
        for record in with_header(self._text("sacct.txt")):
            job = record["JobID"].partition(".")[0]
            if not wanted or wanted in {
                job,
                job.partition("_")[0].partition("+")[0],
                record.get("JobIDRaw", "").partition(".")[0],
            }:
                yield "".join(f"{record.get(name, '')}{separator}" for name in fields) + "\n"

    def _text(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8")


def recordings() -> Iterator[str]:
    """Return the Slurm versions that there are recordings of."""
    folder: Traversable = fixture(FOLDER)
    return (each.name for each in folder.iterdir() if each.is_dir())


def _option(argv: Sequence[str], name: str) -> str:
    """Return the value of an option, which follows `=` or is the next word."""
    if name in argv[:-1]:
        return argv[argv.index(name) + 1]
    return next((word.partition("=")[2] for word in argv if word.startswith(f"{name}=")), "")


def _whole_jobs(record: Mapping[str, str]) -> Iterator[str]:
    return (record[name] for name in ("ArrayJobId", "HetJobId") if name in record)


def _of_array(record: Mapping[str, str]) -> str:
    return f"{record.get('ArrayJobId')}_{record.get('ArrayTaskId')}"


def _value(record: Mapping[str, str], name: str) -> str:
    """Return a field of squeue from a record of `scontrol show job`."""
    if name in {"UserName", "UserID", "GroupID"}:
        person, _, number = record["GroupId" if name == "GroupID" else "UserId"].rstrip(")").partition("(")
        return person if name == "UserName" else number
    if name == "tres-alloc":
        # 24.11 prints AllocTRES and ReqTRES in place of TRES.
        said = (record.get(key, "(null)") for key in ("TRES", "AllocTRES", "ReqTRES"))
        return next((each for each in said if each != "(null)"), "")
    # scontrol prints a reason's blanks as underscores.
    if name == "Reason":
        return record.get("Reason", "").replace("_", " ")
    # N/A is what squeue itself prints for a field that a job does not have.
    return record.get(_KEYS.get(name, name), "N/A")
