"""A job as a form: which fields it has, what stands in them, and what is wrong with which."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.jobtexts import FIELDS, SPEC, TASKS, field_of, task_paths, texts_of, values_of
from cockpit.model.spec import JobKind

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

SOURCE: Final = "the form"
USUAL: Final = (
    *("name", "command", "algorithm", "output", "nodes"),
    *(SPEC + each for each in ("cpus", "memory", "cards", "card_models")),
    *("mode", "time_limit", "priority", "partitions", "account", "terminal", "kind"),
)
"""Always there,"""
EACH_TASKS: Final = frozenset({"command", "algorithm"})
"""but for these in a batch."""
_PATH: Final = re.compile(
    r"(?:the form: )?(?:jobs\[0\]\.)?(?P<path>[a-z_]+(?:\[\d+\])?(?:\.[a-z_]+)*)[^:]*: (?P<said>.*)"
)

ReadJobs = Callable[[str, str, str], "list[JobSpec]"]
"""From a source's name, its text and its folder. Raises `SpecErrors`."""


class Judged(NamedTuple):
    """What a form comes to."""

    spec: JobSpec | None
    """None: something is wrong."""
    errors: Mapping[str, str]
    """By the path of a field that the form shows."""
    others: tuple[str, ...]
    """What is wrong with no field of it."""


class JobForm:
    """The texts as they were typed. What its fields cannot say is not lost: such a field has a line of its own."""

    def __init__(self, values: Mapping[str, object]) -> None:
        """`values`: as in a job file."""
        given = texts_of(values)
        alternatives = "specs" in given
        usual = [path for path in USUAL if not (alternatives and path.startswith(SPEC))]
        if values.get("kind") == JobKind.BATCH:
            tasks = [path for path in given if path.startswith(TASKS)]
            usual = ["name", "kind", *tasks, *(path for path in usual if path not in EACH_TASKS)]
        self.texts: dict[str, str] = {**dict.fromkeys(usual, ""), **given}

    def add(self, path: str) -> None:
        """Show another field, empty; of tasks the fields of one more."""
        for each in task_paths(self._tasks) if path == TASKS else [path]:
            self.texts.setdefault(each, "")

    @property
    def _tasks(self) -> int:
        """How many stand here."""
        return sum(path.startswith(f"{TASKS}[") and path.endswith(".command") for path in self.texts)

    @property
    def absent(self) -> list[str]:
        """Fields that could be added; to a batch another task first."""
        left_out = EACH_TASKS if self.texts.get("kind") == JobKind.BATCH else frozenset()
        either = "specs" if any(path.startswith(SPEC) for path in self.texts) else SPEC
        paths = [TASKS, *FIELDS] if left_out else FIELDS
        there = self.texts.keys() | left_out
        return [path for path in dict.fromkeys(paths) if path not in there and not path.startswith(either)]

    def values(self) -> dict[str, object]:
        """As in a job file."""
        return values_of(self.texts)

    def judged(self, read: ReadJobs, folder: str) -> Judged:
        """By the rules of job files; relative paths begin at `folder`."""
        text = msgspec.json.encode(self.values()).decode()
        try:
            (spec,) = read(SOURCE, text, folder)
        except SpecErrors as wrong:
            return self.blamed(wrong.errors)
        return Judged(spec, {}, ())

    def blamed(self, errors: Sequence[str]) -> Judged:
        """Each error beside the field whose path leads it; the first where there are several."""
        at: dict[str, str] = {}
        others: list[str] = []
        for error in errors:
            path, said = self._place(error)
            if path:
                at.setdefault(path, said)
            else:
                others.append(said)
        return Judged(None, at, tuple(others))

    def _place(self, error: str) -> tuple[str, str]:
        found = _PATH.fullmatch(error)
        if found is None:
            return "", error.removeprefix(f"{SOURCE}: ")
        path = found["path"]
        near = (path, path.rpartition(".")[0], path.partition("[")[0], path.partition(".")[0])
        shown = next((each for each in near if each in self.texts), "")
        return (shown, found["said"]) if shown else ("", error.removeprefix(f"{SOURCE}: "))


def title(path: str) -> str:
    """What stands before a field: `card models`, `#1 command` of a task."""
    return re.sub(rf"^{TASKS}\[(\d+)\]\.", r"#\1 ", path.removeprefix(SPEC)).replace("_", " ")


def about(path: str) -> str:
    """What it is for, in a sentence."""
    return field_of(path).about
