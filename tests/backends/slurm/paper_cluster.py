"""A recorded cluster that prints what its commands would, byte for byte, and may be made to print it wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cockpit.backends.slurm.mapping.records import job_blocks
from cockpit.backends.slurm.mapping.rest.questions import option
from cockpit.backends.slurm.wire.calls import NOTHING_ABSENT, Printed
from cockpit.backends.slurm.wire.recorded import RecordedCommands

Fault = Callable[[Printed], Printed]
_PRIORITIES = "JOBID|PARTITION|USER|PRIORITY|AGE|ASSOC|FAIRSHARE|JOBSIZE|PARTITION|QOS|SITE|TRES|NICE\n"
SDIAG = """*******************************************************
sdiag output at Sat Nov 21 09:00:00 2026 ({at})
Data since      Sat Nov 21 08:00:00 2026 (1)
*******************************************************
Job states ts:  Sat Nov 21 09:00:00 2026 ({at})
Jobs pending:   {pending}
Jobs running:   {running}

Remote Procedure Call statistics by message type
Remote Procedure Call statistics by user
"""


class Changeable(RecordedCommands):
    """A cluster that answers like a recording and takes changes, up to the command that has no cluster to run on."""

    absent = NOTHING_ABSENT


class PaperCluster(Changeable):
    """Its answers are not verified: they are examined as those of a living cluster are."""

    def __init__(self, version: str = "22.05") -> None:
        super().__init__(version)
        self.faults: dict[str, Fault] = {}
        """By what `subject` calls a question."""
        self.started: set[str] = set()
        """Jobs that started after squeue listed them as waiting: sprio does not know them any more."""
        self.asked: list[str] = []

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        subject = subject_of(argv)
        self.asked.append(subject)
        printed = Printed(self._whole(argv), "", 0)
        if not printed.stdout:
            return Printed("", "error: Invalid job id specified", 1)
        return printed if is_of_one(argv) else self.faults.get(subject, lambda one: one)(printed)

    def _whole(self, argv: Sequence[str]) -> str:
        words = [word for word in argv[1:] if not word.startswith("-")]
        if (ids := self._ids_alone(argv, words)) is not None:
            return ids
        if argv[0] == "sdiag":
            return self._statistics()
        if argv[0] == "sprio" and option(argv, "--jobs") in self.started:
            return "Unable to find jobs matching user/id(s) specified\n"
        if argv[0] == "sprio":
            return _PRIORITIES + self._printed(argv[:3])
        if argv[:2] == ("sacctmgr", "-n") or list(argv[:2]) == ["sacctmgr", "-n"]:
            return "None\n"
        if argv[0] in {"squeue", "sacct"} and "--noheader" not in argv and "--batch-script" not in argv:
            return self._header(argv) + self._printed(argv)
        if words[:2] == ["show", "step"]:
            return ""
        text = self._printed([*argv[:4], *words[:2]] if argv[0] == "sshare" else [argv[0], *words[:2]])
        if words[:2] == ["show", "reservation"]:
            return " ".join(text.split()) + "\n"
        return _of_one(text, words[1], words[2]) if len(words) > 2 and argv[0] == "scontrol" else text

    def _ids_alone(self, argv: Sequence[str], words: Sequence[str]) -> str | None:
        """Return the answer to a question about ids or names alone."""
        if argv[0] == "sacct" and "--noheader" in argv:
            lines = self._printed([word for word in argv if word != "--noheader"] + ["--delimiter=|"]).splitlines()
            return "".join(f"{line[:-1]}\n" for line in lines if "." not in line.partition("|")[0] or "--jobs" in argv)
        if list(words[:2]) == ["list", "qos"] and "-n" in argv:
            return "".join(f"{line.partition('|')[0]}\n" for line in self._text("sacctmgr-qos.txt").splitlines()[1:])
        return None

    def _header(self, argv: Sequence[str]) -> str:
        if argv[0] == "sacct":
            separator = option(argv, "--delimiter")
            return "".join(f"{name}{separator}" for name in option(argv, "--format").split(",")) + "\n"
        named = [each.partition(":")[::2] for each in option(argv, "--Format").split(",")]
        return "".join(f"{name.upper()}{separator}" for name, separator in named) + "\n"

    def _statistics(self) -> str:
        states = [line.split()[0] for line in self._text("scontrol-job-d.txt").split("JobState=")[1:]]
        counts = {"pending": states.count("PENDING"), "running": states.count("RUNNING")}
        return SDIAG.format(at=self.recorded_at // 1000, **counts)


def _of_one(text: str, what: str, name: str) -> str:
    """Return the record of one name out of a list of scontrol."""
    if what == "job":
        return next((each for each in job_blocks(text) if each.split()[0] == f"JobId={name}"), "")
    return "".join(f"{line}\n" for line in text.splitlines() if line.split()[0].endswith(f"Name={name}"))


def is_of_one(argv: Sequence[str]) -> bool:
    """Whether it is a question about one name alone, whose short answer is not cut."""
    narrowing = ("--jobs=", "--accounts=", "account=", "name=")
    return argv[0] != "squeue" and (any(word.startswith(narrowing) for word in argv) or "licenses" in argv[:-1])


def subject_of(argv: Sequence[str]) -> str:
    """`squeue`, `scontrol show node`, `sacctmgr list qos`, `sacct ids`: which question it is."""
    if argv[0] == "sacct" and "--noheader" in argv:
        return "sacct ids"
    words = [word for word in argv[1:] if not word.startswith("-")]
    return " ".join([argv[0], *words[:2]]) if argv[0] in {"scontrol", "sacctmgr"} else argv[0]
