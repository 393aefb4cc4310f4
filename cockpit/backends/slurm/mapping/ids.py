"""Translates job ids: each task of an array has one id in cockpit, which stays the same from its wait to its end."""

from __future__ import annotations

from cockpit.model.ids import JobId, job_words, task_id, task_of


def job_id(number: int, task: int | None = None) -> JobId:
    """The id here of Slurm's job, or of that task of its array `number`."""
    return JobId(number) if task is None else task_id(number, task)


def slurm_id(job: JobId | int, task: int | None = None) -> str:
    """Return the id for Slurm's commands: `123` or `123_4`."""
    return job_words(job) if task is None else f"{task_of(job)[0]}_{task}"
