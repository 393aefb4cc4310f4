"""Job ids. Slurm names a task of an array by two numbers, and those that wait have no other; here each has one id.

The lower 26 bits are Slurm's own id of the job or array (`MAX_JOB_ID` is 0x03ffffff), the rest is 1 + the task's
index. So the id of a task is the same while it waits and while it runs, and nothing need be looked up.
"""

from __future__ import annotations

from cockpit.model.ids import JobId

BITS = 26
_MASK = (1 << BITS) - 1


def job_id(number: int, task: int | None = None) -> JobId:
    """The id here; with `task` of that task of array `number`."""
    return JobId(number if task is None else number | (task + 1) << BITS)


def slurm_id(job: JobId | int, task: int | None = None) -> str:
    """As Slurm's commands take it: `123` or `123_4`."""
    number, own = split(job)
    index = task if task is not None else own
    return str(number) if index is None else f"{number}_{index}"


def split(job: JobId | int) -> tuple[int, int | None]:
    """Slurm's number of the job or array, and the task's index."""
    above = job >> BITS
    return job & _MASK, above - 1 if above else None
