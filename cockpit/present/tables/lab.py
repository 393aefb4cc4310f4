"""The columns of the policy lab's rows."""

from __future__ import annotations

from typing import Final

from cockpit.present.columns import Column, TableView, ValueKind

_FIGURES: Final = (
    ("mean_wait", "WAIT", "Mean wait in seconds", ValueKind.NUMBER),
    ("longest_wait", "LONGEST", "Longest wait in seconds", ValueKind.NUMBER),
    ("mean_slowdown", "SLOWDOWN", "Mean bounded slowdown", ValueKind.NUMBER),
    ("never", "NEVER", "Jobs that never start", ValueKind.INTEGER),
)

LAB: Final = TableView(
    name="lab",
    help="Recorded jobs replayed under today's rules and under changed ones, by user, account and queue",
    empty="There is no job to replay.",
    columns=(
        Column("group", "GROUP", "What the jobs have in common: all, user, account or queue"),
        Column("name", "NAME", "The user, account or queue; empty: all jobs"),
        Column("jobs", "JOBS", "Number of jobs", ValueKind.INTEGER),
        Column("recorded_wait", "RECORDED", "Mean wait that was recorded, in seconds", ValueKind.NUMBER, nullable=True),
        *(
            Column(
                f"{scenario}_{field}",
                f"{title} {scenario.upper()}",
                f"{words}, {'under the present rules' if scenario == 'today' else 'with the changes'}",
                kind,
                field=f"{scenario}.{field}",
            )
            for field, title, words, kind in _FIGURES
            for scenario in ("today", "changed")
        ),
    ),
)
