"""Converts the tasks and trials of a job: a batch's tasks into jobs of their own and back, a sweep's trials into values
and commands.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import count, islice
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import CockpitError
from cockpit.model.spec import Dependency, DependencyKind, JobKind, JobSpec, Search, Sweep, Task

if TYPE_CHECKING:
    from collections.abc import Iterator


_MASK = (1 << 64) - 1


def trial_count(sweep: Sweep) -> int:
    """Return the number of trials: that of the combinations, or a smaller one that the sweep asks for."""
    combinations = prod(len(values) for values in sweep.parameters.values())
    return min(combinations, sweep.max_trials) if sweep.max_trials else combinations


def has_trial(sweep: Sweep, index: int) -> bool:
    """Return whether the sweep has a trial with this index, from 0."""
    return 0 <= index < trial_count(sweep)


def trial_values(sweep: Sweep, index: int) -> dict[str, str]:
    """Return the values of the trial with this index, from 0, by parameter. A grid counts up its last parameter first;
    a random choice has no combination twice, and depends on the seed alone. Raises `CockpitError` if there is no such
    trial."""
    if not has_trial(sweep, index):
        raise CockpitError(no_trial(sweep, index))
    number = index if sweep.search is Search.GRID else next(islice(_choose_numbers(sweep), index, None))
    values: dict[str, str] = {}
    for name, choices in reversed(sweep.parameters.items()):
        # The trial's number is read as a number of mixed base, one digit for each parameter, the last one first.
        number, place = divmod(number, len(choices))
        values[name] = choices[place]
    return {name: values[name] for name in sweep.parameters}


def no_trial(sweep: Sweep, index: int) -> str:
    """Return the sentence for an index that the sweep does not have."""
    return f"The sweep has no trial {trial_number(index)}: it has {trial_count(sweep)}."


def trial_number(index: int) -> str:
    """Return the trial's number as a text, from 1."""
    return str(index + 1)


def trial_spec(spec: JobSpec, index: int) -> JobSpec:
    """Return the job of one trial: each value is appended to its command as `--name=value`."""
    assert spec.sweep is not None
    values = trial_values(spec.sweep, index)
    words = (shlex.quote(f"--{name}={value}") for name, value in values.items())
    return replace(spec, command=" ".join([spec.command.strip(" \t\n"), *words]))


def _choose_numbers(sweep: Sweep) -> Iterator[int]:
    """Yield all numbers of combinations, in the order of their trials."""
    combinations = prod(len(values) for values in sweep.parameters.values())
    seen: set[int] = set()
    for step in count():
        if len(seen) == combinations:  # else the loop would never end after the last
            return
        # Each seed has a range of its own of 2^32 numbers, so that two seeds give unrelated choices.
        number = _splitmix64(sweep.seed * 0x1_0000_0001 + step) % combinations
        if number not in seen:
            seen.add(number)
            yield number


def _splitmix64(number: int) -> int:
    """Return the splitmix64 of a number (Steele, Lea and Flood, 2014): neighbouring numbers come out far apart."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def task_spec(spec: JobSpec, index: int) -> JobSpec:
    """Return one task of a batch as a regular job, whose output folder is its own."""
    task = spec.tasks[index]
    return replace(
        spec,
        kind=JobKind.REGULAR,
        tasks=(),
        command=task.command,
        algorithm=task.algorithm,
        output=f"{spec.output.rstrip('/')}/{spec.name}-{index}",
    )


def batch_spec(tasks: Mapping[int, JobSpec]) -> JobSpec | None:
    """Return the batch that would submit these tasks again; None if there are none.

    `tasks`: specs that `task_spec` made, by index.
    """
    if not tasks:
        return None
    number, first = min(tasks.items(), key=itemgetter(0))
    return replace(
        first,
        kind=JobKind.BATCH,
        tasks=tuple(Task(command=each.command, algorithm=each.algorithm) for _, each in sorted(tasks.items())),
        command="",
        algorithm=None,
        output=first.output.removesuffix(f"/{first.name}-{number}") or "/",
        dependencies=tuple(_of_all_tasks(each, number) for each in first.dependencies),
    )


def _of_all_tasks(condition: Dependency, number: int) -> Dependency:
    """Return an `aftercorr` condition of one task in the form that the whole batch had."""
    own = condition.kind is DependencyKind.AFTER_CORR and condition.task == number
    return replace(condition, task=None) if own else condition
