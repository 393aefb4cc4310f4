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
        Field("max_restarts", WholeNumber(RESTARTS), "Give how often the job restarts after a failure.", required=True),
        Field(
            "lost_only", Flag(), "Restart only if its node fails or its container is lost, not if its command fails."
        ),
    ],
)

ELASTIC_RESUME = Table(
    ElasticResume,
    [
        Field("min_nodes", WholeNumber(NODES), "Give the least number of nodes with which it runs.", required=True),
        Field("allow_scaling", Flag(), "If it has fewer nodes, it takes more while it runs."),
    ],
)

PERFORMANCE = Table(
    Performance,
    [
        Field(
            "threshold",
            Factor(),
            "Give the largest acceptable part of an iteration's end-to-end time that is hardware time: 0.9.",
            required=True,
        ),
        Field(
            "action",
            Choice(OnSlow),
            "alert: mail to its owner and a notice; reschedule-and-alert: it also continues on other nodes.",
        ),
    ],
)

RESUME = Table(
    Resume,
    [
        Field(
            "max_resumes",
            WholeNumber(RESTARTS),
            "Give how often the job resumes after a failure; preemption does not count.",
            required=True,
        ),
        Field(
            "grace_period",
            Duration(GRACE_SECONDS),
            "Give the time to write a checkpoint when the job is asked to end; replaces grace_period.",
            attribute="grace_seconds",
            required=True,
        ),
        Field(
            "elastic", ELASTIC_RESUME, "It runs with fewer nodes if not all are free; its command must support that."
        ),
        Field("performance", PERFORMANCE, "Iteration times are read from its log, and slow ones raise an alert."),
    ],
)

HOOKS = Table(
    Hooks,
    [
        Field("before_start", _SCRIPT, "Bash script to run before the command; if it fails, the job fails."),
        Field(
            "after_end",
            _SCRIPT,
            "Bash script to run after the command, however it ended; killed after the grace period.",
        ),
    ],
)


ELASTIC = Table(
    Elastic,
    [
        Field(
            "workers",
            WholeNumber(NODES),
            "Give the number of workers to start with if they fit; each has a node of its own.",
            required=True,
        ),
        Field("min_workers", WholeNumber(NODES), "The least number of workers to start and to continue; by default 1."),
        Field(
            "max_workers",
            WholeNumber(NODES),
            "The largest number of workers, if no other job can use what is free; by default workers.",
            derive=lambda given: given["workers"],
        ),
        Field("allow_scaling", Flag(), "The job may grow while it runs. It may always be shrunk."),
        Field("job_restart_policy", Choice(JobRestart), "When the job restarts: Never or OnFailure."),
        Field(
            "worker_restart_policy",
            Choice(WorkerRestart),
            "When an ended worker is replaced: Never, OnFailure, ExitCode (from 128 on) or Always.",
        ),
        Field(
            "backoff_limit",
            WholeNumber(RESTARTS),
            "The largest number of restarts of the job and its workers together; by default 3.",
        ),
        Field(
            "reclaim_signal",
            Choice(ReclaimSignal),
            "The signal to a recalled worker, in addition to the notice in its workers' file: none or SIGTERM.",
        ),
        Field(
            "grace_period",
            Duration(GRACE_SECONDS),
            "Time for a recalled worker to end; by default that of an evicted job, 5m if its node is reclaimed.",
            attribute="grace_seconds",
        ),
        Field(
            "max_wait_time",
            Duration(WAIT_SECONDS),
            "How long the job stays suspended below min_workers, and waits for a worker that does not answer.",
            attribute="max_wait_seconds",
        ),
        Field("after_wait", Choice(AfterWait), "What happens to the job after that time: wait in the queue, or fail."),
        Field("spot", Flag(), "It may run on spot nodes, which may be reclaimed at any time after a notice."),
        Field(
            "max_price",
            Price(),
            "Start and grow only on nodes whose price is at most this, such as 0.35; without a price it is 0.",
            attribute="max_price_milli",
        ),
        Field("shrink_above_price", Flag(), "Its workers also leave nodes whose price rises above max_price."),
        Field(
            "best_effort",
            Flag(),
            "Its workers request no CPUs or memory, have no limits, and are evicted first if a node runs short.",
        ),
        Field(
            "supervised",
            Flag(),
            "Its best-effort workers are notified before they are evicted; otherwise they are killed at once.",
        ),
        Field("launcher_selector", Labels(), "Labels of the launcher's node: {disk: ssd}, or disk=ssd."),
    ],
)
