"""A job that is being taken over: the values of a job file, what of the original has no counterpart in one, and what
the original's own system would refuse."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from cockpit.launch.command import ENTRYPOINT, wrapped
from cockpit.launch.lexer import NotSimple, lex
from cockpit.launch.shellform import has_patterns
from cockpit.model.spec import DAY_SECONDS
from cockpit.model.text import visible, whole


def take_longest_wait(seconds: int, at: str, draft: Draft, limit_seconds: int | None = None) -> None:
    """Turn a longest waiting time into a deadline: waiting time and time limit from now on.

    `limit_seconds`: the time limit; None: nothing gives one, and the usual one is written into the draft.
    """
    if not seconds:
        return
    if limit_seconds is None:
        limit_seconds = DAY_SECONDS
        # Written down, so that the deadline stays right if the cluster's default limit is another one.
        draft.values.setdefault("time_limit", limit_seconds)
    draft.values["deadline"] = f"now+{seconds + limit_seconds}"
    draft.lacks(at, f"is the deadline, with the time limit of {limit_seconds} s behind it, counted from now")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What readers may know of the submission; they read no clock and no environment themselves."""

    now: datetime | None = None
    """The present time, in the user's time zone; None: unknown, and local times are refused."""
    variables: Mapping[str, str] | None = None
    """The environment of the submitting shell; None: it is not taken over."""
    options: tuple[str, ...] = ()
    """Options of sbatch on the command line, `--name=value` or `--name`; they override those of a script."""


UNKNOWN = Submission()


_QUANTITY: Final = re.compile(r"\+?(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)(?P<unit>[A-Za-z]*)")
_DECIMAL: Final = {"m": 1e-3, "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BYTES: Final = _DECIMAL | {f"{unit}i": 1 << 10 * power for power, unit in enumerate("KMGTPE", start=1)}
_MIB: Final = 1 << 20


class Draft:
    """The values of a job file that a reader fills in, and notes about what it left out."""

    def __init__(self, name: str = "") -> None:
        self.values: dict[str, Any] = {"name": name} if name else {}
        self.notes: list[str] = []
        """Sentences, each led by what it is about as the original calls it."""
        self.errors: list[str] = []
        """What is wrong, in the same form. A draft with errors is not submitted."""

    def lacks(self, what: str, why: str = "has no counterpart here; left out") -> None:
        self.notes.append(f"{visible(what, 200)}: {why}")

    def refuse(self, what: str, why: str) -> None:
        error = f"{visible(what, 200)}: {why}"
        # The roles of a job often have equal parts.
        if error not in self.errors:
            self.errors.append(error)

    def whole(self, value: object, at: str, *, missing: int = 0) -> int:
        """Return the whole number that the field `at` holds, from 0 up. Any other value is an error of the draft."""
        if value is None:
            return missing
        number = None if isinstance(value, bool) else whole(str(value))
        if number is None:
            self.refuse(at, f"{visible(str(value))} is no whole number; {remedy(value, 'write one, such as 2')}")
        return missing if number is None else number

    def lacks_behind(self, rest: str) -> None:
        """Note what is left out behind the command. `rest`: the text after the command that was read."""
        if rest:
            self.lacks(rest.splitlines()[0], "follows the command and is another one; left out")

    def spec(self, **fields: object) -> None:
        """Set fields of the spec of each node; fields that are None were not given."""
        known = {name: value for name, value in fields.items() if value is not None}
        if known:
            self.values.setdefault("specs", [{}])[0].update(known)

    def env(self, name: str, value: str) -> None:
        self.values.setdefault("env", {})[name] = value

    def run(self, arguments: Sequence[str]) -> None:
        """Set a program and its arguments as the command; without any, the image says what runs."""
        if arguments:
            self.values["command"] = joined(arguments)
        else:
            self.values["command"] = ENTRYPOINT
            self.lacks("command", f"nothing is given; `{ENTRYPOINT}` is written for the ENTRYPOINT of the image")

    def finished(self) -> dict[str, Any]:
        """Return the draft with the fields that a job file must have."""
        if "name" not in self.values:
            self.values["name"] = "job"
            self.lacks("name", "nothing gives one; `job` is used")
        if "output" not in self.values:
            self.values["output"] = f"./{visible(str(self.values['name']))}"
            self.lacks("output", "nothing says where results go; a folder with the job's name beside the file is used")
        return self.values


def joined(arguments: Sequence[str]) -> str:
    """Return the command line of several words, with as few quotes as possible."""
    *shell, script = arguments
    # `wrapped` writes a script in the form that reading unwraps again; blanks around it would be lost on that way.
    if shell == ["bash", "-c"] and script == script.strip(" \t\n"):
        return wrapped(script)
    return shlex.join(arguments)


def runnable(text: str) -> str:
    """Return a shell's text as a command: unchanged where cockpit understands it alike, else handed to bash."""
    plain = text.strip()
    words = lex(plain)
    return wrapped(text) if isinstance(words, NotSimple) or any(map(has_patterns, words)) else plain


_PLACEHOLDER: Final = re.compile(r"\$\{?\w|\{\{|<[\w -]+>")


def remedy(value: object, usual: str) -> str:
    """Return what to do about a wrong value: `usual`, or, in a template that is not filled in, to do that."""
    if _PLACEHOLDER.search(str(value)) is None:
        return usual
    return "it is a template's placeholder: write its value, or fill all in by `envsubst < FILE | cockpit submit -`"


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
    # round: a float that is a little above a whole number must not add a CPU.
    return max(1, upwards(round(float(match["number"]) * _DECIMAL[match["unit"]], 6)))


def upwards(amount: float) -> int:
    """Return the next whole number.

    Beyond the numbers that are counted exactly it is the last of these, which every bound refuses.
    """
    return math.ceil(min(amount, _EXACT))
