"""The folders and names under which TensorBoard shows a job, and the sentences that users read about it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail


def runs_of(detail: JobDetail) -> dict[str, str]:
    """Return the folders by the name of the run: for a task of a batch those of all its tasks (`tune-0`, `tune-1` …),
    for any other job its own."""
    if detail.tasks:
        return {posixpath.basename(row.output): row.output for row in detail.tasks}
    return {detail.job.spec.name: detail.job.spec.output}


def board_name(detail: JobDetail) -> str:
    """Return the folder name of the job's board, unique among the user's boards; all tasks of a batch share one."""
    from hashlib import sha256

    whole, array = detail.batch or detail.job.spec, detail.job.array
    job = array.array if detail.batch is not None and array is not None else detail.job.id
    return f"{job}-{sha256(f'{whole.output}/{whole.name}'.encode()).hexdigest()[:12]}"
