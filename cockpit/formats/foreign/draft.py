"""A job that is being taken over: the values of a job file, and whatever of the original has no counterpart in one."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, Final

import msgspec

from cockpit.launch.command import ENTRYPOINT, wrapped
from cockpit.launch.lexer import Literal, NotSimple, Part, Variable, Word, lex
from cockpit.model.spec import DAY_SECONDS
from cockpit.model.text import visible


def take_longest_wait(seconds: int, at: str, draft: Draft, limit_seconds: int | None = None) -> None:
    """`limit_seconds`: the time limit; None: nothing gives one, and the usual one is written down."""
    if not seconds:
        return
    if limit_seconds is None:
        limit_seconds = DAY_SECONDS
        draft.values.setdefault("time_limit", limit_seconds)
    draft.values["deadline"] = f"now+{seconds + limit_seconds}"
    draft.lacks(at, f"is the deadline, with the time limit of {limit_seconds} s behind it, counted from now")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Handed to the readers, which look at no clock and no environment themselves."""

    now: datetime | None = None
    """The moment, in the zone in which the person tells the time; None: unknown, and local moments are refused."""
    variables: Mapping[str, str] | None = None
    """The environment of the submitting shell; None: it is not taken over."""
    options: tuple[str, ...] = ()
    """Options of sbatch on the command line, `--name=value` or `--name`; they override those of a script."""


UNKNOWN = Submission()


_QUANTITY: Final = re.compile(r"\+?(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)(?P<unit>[A-Za-z]*)")
_DECIMAL: Final = {"m": 1e-3, "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BYTES: Final = _DECIMAL | {f"{unit}i": 1 << 10 * power for power, unit in enumerate("KMGTPE", start=1)}
_MIB: Final = 1 << 20
_ONLY_A_SHELL: Final = re.compile(r"[*?\[\]{}~]")
"""The expansions of unquoted words that a shell makes and cockpit does not."""
_BOTH: Final = re.compile(r"\$\{\w+\}|\$\(\((?:[^()]|\([^()]*\))*\)\)")
"""The expansions that both make."""


_BETWEEN_COMMANDS: Final = re.compile(r"[;&|\n]+")
_BLANK_BEHIND: Final = re.compile(r"\\[ \t]+\n")


class Draft:
    """Filled by one reader."""

    def __init__(self, name: str = "") -> None:
        self.values: dict[str, Any] = {"name": name} if name else {}
        self.notes: list[str] = []
        """Sentences, each led by what it is about as the original calls it."""

    def lacks(self, what: str, why: str = "has no counterpart here; left out") -> None:
        self.notes.append(f"{visible(what, 200)}: {why}")

    def lacks_behind(self, rest: str) -> None:
        """Note what is left out behind the command. `rest`: the text after the command that was read."""
        if rest:
            self.lacks(rest.splitlines()[0], "stands behind the command and is another one; left out")

    def spec(self, **fields: object) -> None:
        """Return the spec of each node; fields that are None were not given."""
        known = {name: value for name, value in fields.items() if value is not None}
        if known:
            self.values.setdefault("specs", [{}])[0].update(known)

    def env(self, name: str, value: str) -> None:
        self.values.setdefault("env", {})[name] = value

    def run(self, arguments: Sequence[str]) -> None:
        """A program and its arguments, or nothing: then the image says what runs."""
        if arguments:
            self.values["command"] = joined(arguments)
        else:
            self.values["command"] = ENTRYPOINT
            self.lacks("command", f"nothing is given; `{ENTRYPOINT}` is written for the ENTRYPOINT of the image")

    def finished(self) -> dict[str, Any]:
        """Return the draft with the fields that a job file must have."""
        if "name" not in self.values:
            self.values["name"] = "job"
            self.lacks("name", "nothing gives one; `job` stands for it")
        if "output" not in self.values:
            self.values["output"] = f"./{visible(str(self.values['name']))}"
            self.lacks(
                "output", "nothing says where results go; a folder of the job's name beside the file stands for it"
            )
        return self.values


def joined(arguments: Sequence[str]) -> str:
    """Return the command line of several words, with as few quotes as possible."""
    *shell, script = arguments
    if shell == ["bash", "-c"] and script == script.strip(" \t\n"):
        return wrapped(script)
    return shlex.join(arguments)


def runnable(text: str) -> str:
    """A shell's text as a command: as it is where cockpit takes it for the same, else handed to bash."""
    plain = text.strip()
    words = lex(plain)
    if isinstance(words, NotSimple) or any(_is_expanded_by_a_shell(word) for word in words):
        return wrapped(text)
    return plain


def _is_expanded_by_a_shell(word: Word) -> bool:
    return not word.quoted and _ONLY_A_SHELL.search(_BOTH.sub("", word.source)) is not None


_EXACT = 2.0**53
"""Beyond it not every whole number is a float."""


def memory_mib(quantity: object) -> int | None:
    """Return a Kubernetes quantity in MiB, rounded up; None: it is no quantity."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None or match["unit"] not in _BYTES:
        return None
    return upwards(float(match["number"]) * _BYTES[match["unit"]] / _MIB)


def cpu_count(quantity: object) -> int | None:
    """Return a Kubernetes quantity such as `500m` as CPUs, rounded up; None: it is no quantity."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None or match["unit"] not in {"", "m", "k"}:
        return None
    return max(1, upwards(round(float(match["number"]) * _DECIMAL[match["unit"]], 6)))


def upwards(amount: float) -> int:
    """The next whole number; of what is no longer counted exactly, the last that is, which every bound refuses."""
    return math.ceil(min(amount, _EXACT))


def command_line(text: str) -> tuple[list[str], str]:
    """Return the words of a text's first command, as a shell splits it, and the text behind it. Comments above it are
    skipped, and a shell's expansions are left as they are. Raises ValueError if a quote is not closed.

    A continued line is recognised as such also where copying put a blank behind its `\\`, or lost its end.
    """
    words, rest = _split(_BLANK_BEHIND.sub("\\\\\n", text))
    return [word.lstrip(" ") for word in words], rest


def _split(text: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("#")):
        lines.pop(0)
    line = "\n".join(lines).strip().removeprefix("$ ")
    if line.endswith("\\") and not line.endswith("\\\\"):  # a continued line that nothing follows
        line = line[:-1].rstrip()
    words = lex(line)
    if not isinstance(words, NotSimple):
        return ["".join(map(_as_written, word.parts)) for word in words], ""
    reader = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=";&|\n")
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
    first = list(takewhile(lambda word: not _BETWEEN_COMMANDS.fullmatch(word), reader))
    return first, " ".join(reader)


def _as_written(part: Part) -> str:
    if isinstance(part, Literal):
        return part.text
    return f"${{{part.name}}}" if isinstance(part, Variable) else f"$(({part.text}))"
