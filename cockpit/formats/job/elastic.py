"""The fields of `elastic`: between which sizes a job runs, and what becomes of it and its workers on the way."""

from __future__ import annotations

from cockpit.formats.kinds import Choice, Flag, WholeNumber
from cockpit.formats.labels import Labels
from cockpit.formats.measures import Duration, Price
from cockpit.formats.tables import Field, Table
from cockpit.model.resilience import AfterWait, Elastic, JobRestart, ReclaimSignal, WorkerRestart
from cockpit.model.rules.bounds import GRACE_SECONDS, NODES, RESTARTS, WAIT_SECONDS

ELASTIC = Table(
    Elastic,
    [
        Field(
            name="workers",
            attribute="workers",
            kind=WholeNumber(NODES),
            required=True,
            about="Give the number of workers to start with if they fit; each has a node of its own.",
        ),
        Field(
            name="min_workers",
            attribute="min_workers",
            kind=WholeNumber(NODES),
            about="The least number of workers to start and to continue; by default 1.",
        ),
        Field(
            name="max_workers",
            attribute="max_workers",
            kind=WholeNumber(NODES),
            derive=lambda given: given["workers"],
            about="The largest number of workers, if no other job can use what is free; by default workers.",
        ),
        Field(
            name="allow_scaling",
            attribute="allow_scaling",
            kind=Flag(),
            about="The job may grow while it runs. It may always be shrunk.",
        ),
        Field(
            name="job_restart_policy",
            attribute="job_restart_policy",
            kind=Choice(JobRestart),
            about="When the job restarts: Never or OnFailure.",
        ),
        Field(
            name="worker_restart_policy",
            attribute="worker_restart_policy",
            kind=Choice(WorkerRestart),
            about="When an ended worker is replaced: Never, OnFailure, ExitCode (from 128 on) or Always.",
        ),
        Field(
            name="backoff_limit",
            attribute="backoff_limit",
            kind=WholeNumber(RESTARTS),
            about="The largest number of restarts of the job and its workers together; by default 3.",
        ),
        Field(
            name="reclaim_signal",
            attribute="reclaim_signal",
            kind=Choice(ReclaimSignal),
            about="The signal to a recalled worker, in addition to the notice in its workers' file: none or SIGTERM.",
        ),
        Field(
            name="grace_period",
            attribute="grace_seconds",
            kind=Duration(GRACE_SECONDS),
            about="Time for a recalled worker to end; by default that of an evicted job, 5m if its node is reclaimed.",
        ),
        Field(
            name="max_wait_time",
            attribute="max_wait_seconds",
            kind=Duration(WAIT_SECONDS),
            about="How long the job stays suspended below min_workers, and waits for a worker that does not answer.",
        ),
        Field(
            name="after_wait",
            attribute="after_wait",
            kind=Choice(AfterWait),
            about="What happens to the job after that time: wait in the queue, or fail.",
        ),
        Field(
            name="spot",
            attribute="spot",
            kind=Flag(),
            about="It may run on spot nodes, which may be reclaimed at any time after a notice.",
        ),
        Field(
            name="max_price",
            attribute="max_price_milli",
            kind=Price(),
            about="Run only on nodes whose label price is at most this, such as 0.35; without the label it is 0.",
        ),
        Field(
            name="best_effort",
            attribute="best_effort",
            kind=Flag(),
            about="Its workers request no CPUs or memory, have no limits, and are evicted first if a node runs short.",
        ),
        Field(
            name="supervised",
            attribute="supervised",
            kind=Flag(),
            about="Its best-effort workers are notified before they are evicted; otherwise they are killed at once.",
        ),
        Field(
            name="launcher_selector",
            attribute="launcher_selector",
            kind=Labels(),
            about="Labels of the launcher's node: {disk: ssd}, or disk=ssd.",
        ),
    ],
)
