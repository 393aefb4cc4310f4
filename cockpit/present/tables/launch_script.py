"""The columns of `cockpit launch --dry-run` on a cluster that is handed scripts: one row per job."""

from __future__ import annotations

from typing import Final

import msgspec

from cockpit.present.columns import Column, TableView, ValueKind


class LaunchScript(msgspec.Struct, frozen=True):
    """What would submit one job."""

    name: str
    argv: tuple[str, ...]
    script: str


LAUNCH_SCRIPT: Final = TableView(
    name="launch-script",
    help="What would submit each job to a Slurm cluster",
    empty="The file holds no job.",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The job's name", field="name"),
        Column("argv", "ARGV", ValueKind.WORDS, "The command and its options", field="argv"),
        Column("script", "SCRIPT", ValueKind.TEXT, "What it reads: the script that is run", field="script", wide=True),
    ),
)
