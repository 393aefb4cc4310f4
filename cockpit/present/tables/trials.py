"""The columns of `cockpit trials`: one row per trial of a sweep."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cockpit.launch.sweeps import has_trial, trial_number, trial_values
from cockpit.model.jobrow import JobRow
from cockpit.model.spec import Sweep
from cockpit.present.columns import Column, Context, Fraction, TableView, ValueKind
from cockpit.present.safe import safe


class Trial(msgspec.Struct, frozen=True):
    """A task of a sweep, and the values of its parameters."""

    trial: str
    """Number of the trial, from 1."""
    parameters: dict[str, str]
    row: JobRow


def trials_of(sweep: Sweep, rows: list[JobRow]) -> list[Trial]:
    """Return the trials in order of the tasks' numbers. A task for which the sweep has no trial has no values."""
    # By index: the list's own order may be any, and trial 10 comes after trial 9.
    tasks = sorted((row.array.index, row) for row in rows if row.array is not None)
    return [
        Trial(trial_number(index), trial_values(sweep, index) if has_trial(sweep, index) else {}, row)
        for index, row in tasks
    ]


def values_text(parameters: dict[str, str]) -> str:
    """Return the values in harmless words: `lr=0.1 layers=2`."""
    return " ".join(f"{safe(name)}={safe(value)}" for name, value in parameters.items())


def _elapsed(row: Trial, context: Context) -> float | None:
    began = row.row.started_at
    if began is None:
        return None
    until = row.row.ended_at if row.row.ended_at is not None else context.now
    return float(max(0, until - began - row.row.suspended_ms)) / 1000


def _progress(row: Any, context: Context) -> Fraction | None:  # noqa: ANN401 - a Trial
    elapsed = _elapsed(row, context)
    return None if elapsed is None else Fraction(round(elapsed), row.row.time_limit_seconds)


TRIALS: Final = TableView(
    name="trials",
    help="The trials of a sweep: their parameters, and how far they are",
    empty="The sweep has no trial that is still known.",
    columns=(
        Column("trial", "TRIAL", "Its number, from 1"),
        Column("id", "ID", "The job that it is", ValueKind.INTEGER, field="row.id"),
        Column(
            "parameters",
            "PARAMETERS",
            "The values of its parameters",
            ValueKind.RECORD,
            words=lambda row, _: values_text(row.parameters),
            schema={"type": "object", "additionalProperties": {"type": "string"}},
        ),
        Column("state", "STATE", "State of the trial", field="row.state"),
        Column(
            "progress", "SECONDS", "Run so far, and its time limit", ValueKind.FRACTION, derive=_progress, nullable=True
        ),
    ),
)
