"""What TensorBoard shows of a job: which folders under which names, and what people read about it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail


def runs_of(detail: JobDetail) -> dict[str, str]:
    """Folders by run: of a batch's task those of all tasks of the batch (`tune-0`, `tune-1` …), of any other job its
    own."""
    if detail.tasks:
        return {posixpath.basename(row.output): row.output for row in detail.tasks}
    return {detail.job.spec.name: detail.job.spec.output}


def board_name(detail: JobDetail) -> str:
    """What tells its board from all others of this user, as a folder's name: that of the whole batch."""
    from hashlib import sha256

    whole, array = detail.batch or detail.job.spec, detail.job.array
    job = array.array if detail.batch is not None and array is not None else detail.job.id
    return f"{job}-{sha256(f'{whole.output}/{whole.name}'.encode()).hexdigest()[:12]}"
