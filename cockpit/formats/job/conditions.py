"""Kinds of fields for a job's begin time, its dependencies on other jobs, and the tasks of an array."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice

from cockpit.formats.kinds import Reading, Schema, described
from cockpit.model.ids import JobId, Millis
from cockpit.model.quantity import parse_duration
from cockpit.model.rules.bounds import ARRAY_INDEX, MOST_DEPENDENCIES, MOST_TASKS
from cockpit.model.spec import Array, Dependency, DependencyKind
from cockpit.model.text import is_whole, visible

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MOMENT_PATTERN = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d{2}:?\d{2})$"
RELATIVE_PATTERN = r"^now(?:\s*\+\s*[^\s].{0,40})?$"
_MOMENT = re.compile(MOMENT_PATTERN, re.ASCII)
_ZONELESS = re.compile(r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?$", re.ASCII)
_RELATIVE = re.compile(RELATIVE_PATTERN, re.ASCII)
_SPAN = re.compile(r"(\d{1,9})\s*(second|minute|hour|day|week)s?", re.ASCII)
_SPAN_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


class Moment:
    """A time in ISO 8601 with its zone, or sbatch's `now+COUNT[UNIT]`, counted from the reader's clock."""

    stand_in = Millis(0)

    def read(self, value: object, at: str, reading: Reading) -> Millis:
        moment = (
            self._moment_or_error(value, reading.now) if isinstance(value, str) else f"is {described(value)}; {_WRITE}"
        )
        if isinstance(moment, int):
            return Millis(moment)
        reading.wrong(at, moment)
        return self.stand_in

    def _moment_or_error(self, text: str, now: Millis | None) -> int | str:
        if _MOMENT.match(text):
            return _absolute(text)
        if _RELATIVE.match(text):
            return _relative(text, now)
        if _ZONELESS.match(text):
            return f'"{visible(text)}" could be meant anywhere; add the hour and its zone: {text[:10]}T09:00:00+02:00'
        return f'"{visible(text)}" is no moment; {_WRITE}'

    def write(self, value: Millis) -> str:
        moment = _EPOCH + timedelta(milliseconds=value)
        return f"{moment:%Y-%m-%dT%H:%M:%S}" + (f".{value % 1000:03}Z" if value % 1000 else "Z")

    def schema(self) -> Schema:
        patterns = (MOMENT_PATTERN, RELATIVE_PATTERN)
        texts = [{"type": "string", "pattern": pattern} for pattern in patterns]
        return {"anyOf": texts, "examples": ["2026-10-05T09:00:00+02:00", "now+2h"]}


_WRITE = "write 2026-10-05T09:00:00+02:00 or now+2h"


def _absolute(text: str) -> int | str:
    try:
        # `z` is allowed by ISO 8601 readers, but Python takes only `Z`.
        moment = datetime.fromisoformat(text.upper())
        # In whole numbers: `timestamp()` is a float.
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return f'"{visible(text)}" is no day or no hour; {_WRITE}'


def _relative(text: str, now: Millis | None) -> int | str:
    if now is None:
        return f'"{visible(text)}" needs a clock, and here is none; {_WRITE.partition(" or ")[0]}'
    span = text.partition("+")[2].strip()
    seconds = _span_seconds(span) if span else 0
    return now + 1000 * seconds if isinstance(seconds, int) else seconds


def _span_seconds(span: str) -> int | str:
    """Parse sbatch's `60`, `90minutes`, `2hours`, or any duration that a job file may have."""
    # The words of sbatch are no units of a job file, whose durations are tried last.
    if match := _SPAN.fullmatch(span):
        return int(match[1]) * _SPAN_SECONDS[match[2]]
    return int(span) if is_whole(span) else parse_duration(span)


class Dependencies:
    """Dependencies on other jobs in sbatch's form, in one text or a list."""

    stand_in: tuple[Dependency, ...] = ()

    def read(self, value: object, at: str, reading: Reading) -> tuple[Dependency, ...]:
        if isinstance(value, str):
            return self._terms(value, at, reading)
        if not isinstance(value, list):
            reading.wrong(at, f"is {described(value)}; write afterok:123, or a list of such")
            return self.stand_in
        dependencies: list[Dependency] = []
        for index, item in enumerate(value):
            if isinstance(item, str):
                dependencies += self._terms(item, f"{at}[{index}]", reading)
            else:
                reading.wrong(f"{at}[{index}]", f"is {described(item)}; write afterok:123")
        return tuple(dependencies)

    def _terms(self, text: str, at: str, reading: Reading) -> tuple[Dependency, ...]:
        """Return the conditions of a text; wrong ones are reported to `reading`."""
        dependencies: list[Dependency] = []
        # Bounded, so that a text of megabytes makes no list of megabytes.
        for term in text.split(",", MOST_DEPENDENCIES):
            conditions = _conditions(term.strip())
            if isinstance(conditions, str):
                reading.wrong(at, conditions)
            else:
                dependencies += conditions
        return tuple(dependencies)

    def write(self, value: tuple[Dependency, ...]) -> list[str]:
        return [each.kind.value + (f":{each.target}" if each.job else "") for each in value]

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": DEPENDENCIES_PATTERN}
        items = {"type": "array", "items": text, "maxItems": MOST_DEPENDENCIES}
        return {"anyOf": [text, items], "examples": ["afterok:123", ["afterany:12:13_4", "singleton"]]}


_KINDS = {kind.value: kind for kind in DependencyKind}
_JOB = re.compile(r"(\d{1,18})(?:_(\d{1,9}))?", re.ASCII)
_TERM_PATTERN = r"\s*(?:singleton|after(?:ok|any|notok|corr)(?::\d{1,18}(?:_\d{1,9})?)+)\s*"
DEPENDENCIES_PATTERN = rf"^{_TERM_PATTERN}(?:,{_TERM_PATTERN})*$"


def _conditions(term: str) -> list[Dependency] | str:
    """Parse a term such as `afterok:12:13_4`, which is two conditions; return the error of a wrong one."""
    word, *jobs = term.split(":", MOST_DEPENDENCIES)
    kind = _KINDS.get(word)
    # `?` and `+` come before the job: advice on these forms of sbatch is better than calling an id wrong.
    if kind is None or "?" in term or "+" in term:
        return f'"{visible(term)}" {_no_condition(term, word)}'
    if kind is DependencyKind.SINGLETON:
        return "singleton takes no job" if jobs else [Dependency(kind)]
    if not jobs:
        return f"{word} needs a job: {word}:123"
    dependencies = []
    for job in jobs:
        match = _JOB.fullmatch(job)
        if match is None:
            return f'"{visible(job)}" is no job; give its id, as `cockpit jobs` shows it: {word}:123, or {word}:123_4'
        dependencies.append(Dependency(kind, JobId(int(match[1])), int(match[2]) if match[2] else None))
    return dependencies


def _no_condition(term: str, word: str) -> str:
    """Return what is wrong with a term that is not a condition, such as a form of sbatch that is not supported."""
    if "?" in term:
        return "gives a choice, but all conditions must come true here; write a comma instead of each ?"
    if word == "after" or "+" in term:
        return "waits for a beginning, which is no condition here; write begin_at, or afterany:123"
    return f"is no condition; write {', '.join(_KINDS)}, the first four with :ID"


class Indices:
    """The tasks of an array in sbatch's form: `0-9`, `1,3,5-9:2`; `%2` runs at most two of them at once."""

    stand_in = Array((0,))

    def read(self, value: object, at: str, reading: Reading) -> Array:
        if isinstance(value, str) or type(value) is int:
            array = _array(str(value))
        else:
            array = f"is {described(value)}; {_WRITE_ARRAY}"
        if isinstance(array, Array):
            return array
        reading.wrong(at, array)
        return self.stand_in

    def write(self, value: Array) -> str:
        ranges = ",".join(_ranges(value.indices))
        return f"{ranges}%{value.at_once}" if value.at_once else ranges

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": ARRAY_PATTERN}
        index = {"type": "integer", "minimum": ARRAY_INDEX.low, "maximum": ARRAY_INDEX.high}
        return {"anyOf": [index, text], "examples": ["0-9%2", "1,3,5-9:2"]}


_RANGE_PATTERN = r"\d{1,9}(?:-\d{1,9}(?::\d{1,9})?)?"
ARRAY_PATTERN = rf"^{_RANGE_PATTERN}(?:,{_RANGE_PATTERN})*(?:%\d{{1,9}})?$"
_ARRAY = re.compile(ARRAY_PATTERN, re.ASCII)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?(?::(\d+))?", re.ASCII)
_WRITE_ARRAY = "write the tasks as 0-9, as 1,3,5-9:2, or with a bound as 0-9%2"


def _array(text: str) -> Array | str:
    """Parse the tasks of an array; return the error of a wrong text."""
    # `$` also matches before a last line break.
    if not _ARRAY.match(text) or text.endswith("\n"):
        return f'"{visible(text)}" names no tasks; {_WRITE_ARRAY}'
    ranges, bounded, at_once = text.partition("%")
    if bounded and not int(at_once):
        return "%0 would let no task run; give how many may run at once, or leave % out"
    indices: set[int] = set()
    for part in ranges.split(","):
        span = _span(part)
        if isinstance(span, str):
            return span
        # `0-999999999` must not be expanded before it is refused.
        indices.update(islice(span, MOST_TASKS + 1))
        if len(indices) > MOST_TASKS:
            return f"has more than {MOST_TASKS} tasks; split it"
    return Array(tuple(sorted(indices)), int(at_once or 0))


def _span(part: str) -> range | str:
    match = _RANGE.fullmatch(part)
    assert match is not None
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first:
        return f"{part} runs backwards; write {last}-{first}"
    return range(first, last + 1, step) if step else f"{part} has a step of 0; write 1 or more"


def _ranges(indices: tuple[int, ...]) -> list[str]:
    """Return the usual short text: three or more indices of equal steps as a range, others by themselves."""
    ranges: list[str] = []
    start = 0
    while start < len(indices):
        end = _run_end(indices, start)
        first, last = indices[start], indices[end]
        # Two indices are no shorter as a range.
        if end - start < 2:
            end = start
            ranges.append(str(first))
        else:
            step = indices[start + 1] - first
            ranges.append(f"{first}-{last}" + (f":{step}" if step > 1 else ""))
        start = end + 1
    return ranges


def _run_end(indices: tuple[int, ...], start: int) -> int:
    # The longest run from `start` whose steps equal its first one.
    end = min(start + 1, len(indices) - 1)
    step = indices[end] - indices[start]
    while end + 1 < len(indices) and indices[end + 1] - indices[end] == step:
        end += 1
    return end
