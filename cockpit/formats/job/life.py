"""The fields of a job's life: hooks around its command, restarts, resumes, and the sizes of an elastic job."""

from __future__ import annotations

from cockpit.formats.kinds import Choice, Flag, Text, WholeNumber
from cockpit.formats.labels import Labels
from cockpit.formats.measures import Duration, Price
from cockpit.formats.rulekinds import Factor
from cockpit.formats.tables import Field, Table
from cockpit.model.resilience import (
    AfterWait,
    Elastic,
    ElasticResume,
    JobRestart,
    OnSlow,
    Performance,
    ReclaimSignal,
    Restart,
    Resume,
    WorkerRestart,
)
from cockpit.model.rules.bounds import GRACE_SECONDS, NODES, RESTARTS, VALUE_BYTES, WAIT_SECONDS
from cockpit.model.spec import Hooks

_SCRIPT = Text(maxLength=VALUE_BYTES)

RESTART = Table(
    Restart,
    [
        Field(
            name="max_restarts",
            attribute="max_restarts",
            kind=WholeNumber(RESTARTS),
            required=True,
            about="Give how often the job restarts after a failure.",
        ),
        Field(
            name="lost_only",
            attribute="lost_only",
            kind=Flag(),
            about="Restart only if its node fails or its container is lost, not if its command fails.",
        ),
    ],
)

ELASTIC_RESUME = Table(
    ElasticResume,
    [
        Field(
            name="min_nodes",
            attribute="min_nodes",
            kind=WholeNumber(NODES),
            required=True,
            about="Give the least number of nodes with which it runs.",
        ),
        Field(
            name="allow_scaling",
            attribute="allow_scaling",
            kind=Flag(),
            about="If it has fewer nodes, it takes more while it runs.",
        ),
    ],
)

PERFORMANCE = Table(
    Performance,
    [
        Field(
            name="threshold",
            attribute="threshold",
            kind=Factor(),
            required=True,
            about="Give the largest acceptable part of an iteration's end-to-end time that is hardware time: 0.9.",
        ),
        Field(
            name="action",
            attribute="action",
            kind=Choice(OnSlow),
            about="alert: mail to its owner and a notice; reschedule-and-alert: it also continues on other nodes.",
        ),
    ],
)

RESUME = Table(
    Resume,
    [
        Field(
            name="max_resumes",
            attribute="max_resumes",
            kind=WholeNumber(RESTARTS),
            required=True,
            about="Give how often the job resumes after a failure; preemption does not count.",
        ),
        Field(
            name="grace_period",
            attribute="grace_seconds",
            kind=Duration(GRACE_SECONDS),
            required=True,
            about="Give the time to write a checkpoint when the job is asked to end; replaces grace_period.",
        ),
        Field(
            name="elastic",
            attribute="elastic",
            kind=ELASTIC_RESUME,
            about="It runs with fewer nodes if not all are free; its command must support that.",
        ),
        Field(
            name="performance",
            attribute="performance",
            kind=PERFORMANCE,
            about="Iteration times are read from its log, and slow ones raise an alert.",
        ),
    ],
)

HOOKS = Table(
    Hooks,
    [
        Field(
            name="before_start",
            attribute="before_start",
            kind=_SCRIPT,
            about="Bash script to run before the command; if it fails, the job fails.",
        ),
        Field(
            name="after_end",
            attribute="after_end",
            kind=_SCRIPT,
            about="Bash script to run after the command, however it ended; killed after the grace period.",
        ),
    ],
)


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
