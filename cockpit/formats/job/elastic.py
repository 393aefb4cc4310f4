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
            about="Give how many workers it starts with if they are free, each on a node of its own.",
        ),
        Field(
            name="min_workers",
            attribute="min_workers",
            kind=WholeNumber(NODES),
            about="With fewer it neither starts nor goes on; by default 1.",
        ),
        Field(
            name="max_workers",
            attribute="max_workers",
            kind=WholeNumber(NODES),
            derive=lambda given: given["workers"],
            about="It grows to no more, when nobody else can use what is free; by default workers.",
        ),
        Field(
            name="allow_scaling",
            attribute="allow_scaling",
            kind=Flag(),
            about="It may grow while it runs; it shrinks whenever it has to.",
        ),
        Field(
            name="job_restart_policy",
            attribute="job_restart_policy",
            kind=Choice(JobRestart),
            about="Whether it begins again when it fails: Never or OnFailure.",
        ),
        Field(
            name="worker_restart_policy",
            attribute="worker_restart_policy",
            kind=Choice(WorkerRestart),
            about="When another takes a worker's place: Never, OnFailure, ExitCode (from 128 on) or Always.",
        ),
        Field(
            name="backoff_limit",
            attribute="backoff_limit",
            kind=WholeNumber(RESTARTS),
            about="How often it and its workers begin again, all in all; by default 3.",
        ),
        Field(
            name="reclaim_signal",
            attribute="reclaim_signal",
            kind=Choice(ReclaimSignal),
            about="What a recalled worker is sent at once, beside the notice in its workers' file: none or SIGTERM.",
        ),
        Field(
            name="grace_period",
            attribute="grace_seconds",
            kind=Duration(GRACE_SECONDS),
            about="How long a recalled worker has; by default as long as an evicted job, 5m where a node is reclaimed.",
        ),
        Field(
            name="max_wait_time",
            attribute="max_wait_seconds",
            kind=Duration(WAIT_SECONDS),
            about="How long it is suspended below min_workers, and waits for a worker that does not answer.",
        ),
        Field(
            name="after_wait",
            attribute="after_wait",
            kind=Choice(AfterWait),
            about="What it does when it was suspended for that long: wait in the queue, or fail.",
        ),
        Field(
            name="spot",
            attribute="spot",
            kind=Flag(),
            about="It may run on spot nodes, which are taken back at any time after a notice.",
        ),
        Field(
            name="max_price",
            attribute="max_price_milli",
            kind=Price(),
            about="Only on nodes whose label price is no higher, such as 0.35; those without one cost nothing.",
        ),
        Field(
            name="best_effort",
            attribute="best_effort",
            kind=Flag(),
            about="Its workers ask for no CPUs and no memory, have no limits, and go first where a node runs short.",
        ),
        Field(
            name="supervised",
            attribute="supervised",
            kind=Flag(),
            about="Its best-effort workers are told before they go; without it they are just killed.",
        ),
        Field(
            name="launcher_selector",
            attribute="launcher_selector",
            kind=Labels(),
            about="Labels of the node that its launcher is on: {disk: ssd}, or disk=ssd.",
        ),
    ],
)
