"""The sentences of rules. `docs/scheduling.md` has them too."""

from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    BehindHead,
    DependencyNever,
    EvictionPending,
    InReservation,
    LimitReached,
    NoAssociation,
    NodesReserved,
    NoQueue,
    PartitionRefuses,
    PartitionRule,
    QosRefused,
    QuotaFull,
    QuotaMaxJobs,
    QuotaWaits,
    Reason,
    SuspendedReason,
    WaitsForJob,
)
from cockpit.model.spec import DependencyKind
from cockpit.present.reasons import reason_sentence
from tests.doubles.samples import HOUR, NOW
from tests.present.corpus import HOSTILE, is_harmless

JOB = JobId(4711)
ENQUEUED = QueueWaits("KubeQueue", "root-nlp-v5zxz", "Enqueued")
WAITS = "waits for KubeQueue to dequeue it from queue root-nlp-v5zxz"
NLP_FULL = QuotaFull("root/nlp", "gres/gpu", 32, 30, 4)
LATER, LATEST = Millis(NOW + HOUR), Millis(NOW + 3 * HOUR)
RULE, OK = PartitionRule, DependencyKind.AFTER_OK


def refuses(rule: PartitionRule, allowed: str = "", asked: str = "") -> PartitionRefuses:
    return PartitionRefuses("short", rule, allowed, asked)


SENTENCES: list[tuple[Reason, str]] = [
    (BeginsLater(LATER), "is not to begin before 13:00"),
    (WaitsForJob(OK, JOB), "waits for job 4711 to succeed"),
    (WaitsForJob(OK, JOB, 0, 4), "waits for job 4711_4 to succeed"),
    (DependencyNever(OK, JOB, 0), "waits for job 4711_0 to succeed; it ended otherwise, so this never starts"),
    (WaitsForJob(OK, JOB, 1), "waits for job 4711 to succeed; and for 1 more condition"),
    (WaitsForJob(DependencyKind.AFTER_ANY, JOB), "waits for job 4711 to end"),
    (WaitsForJob(DependencyKind.AFTER_NOT_OK, JOB), "waits for job 4711 to fail"),
    (WaitsForJob(DependencyKind.AFTER_CORR, JOB), "waits for job 4711 to succeed in the same task"),
    (
        WaitsForJob(DependencyKind.SINGLETON, JobId(0)),
        "waits for another job to end, as its owner's job of the same name",
    ),
    (DependencyNever(OK, JOB), "waits for job 4711 to succeed; it ended otherwise, so this never starts"),
    (ArrayFull(JOB, 1), "1 task of its array may run at once, and as many do"),
    (ArrayFull(JOB, 2), "2 tasks of its array may run at once, and as many do"),
    (QuotaFull("root/nlp", "gres/gpu", 32, 30, 4), "queue root/nlp may hold 32 cards; 30 cards in use, 4 cards asked"),
    (
        QuotaFull("root", "mem", 1048576, 1047552, 2048),
        "queue root may hold 1T of memory; 1023G of memory in use, 2G of memory asked",
    ),
    (QuotaFull("root/nlp", "cpu", 1, 0, 2), "queue root/nlp may hold 1 CPU; this job asks for 2 CPUs and never starts"),
    (QuotaMaxJobs("root/child-2", 1), "queue root/child-2 lets 1 job run at a time"),
    (
        QuotaWaits(ENQUEUED, NLP_FULL, (("root/b", 8), ("root/a", 1)), JOB, LATER),
        (
            f"{WAITS}; queue root/nlp may hold 32 cards; 30 cards in use, 4 cards asked; root/b borrows 8 cards and "
            "root/a borrows 1 card; fits by 13:00, when job 4711 ends at the latest"
        ),
    ),
    (
        QuotaWaits(ENQUEUED, QuotaMaxJobs("root/nlp", 1)),
        (
            f"{WAITS}; queue root/nlp lets 1 job run at a time; no bound on when it fits, as not all that runs there "
            "has a time limit"
        ),
    ),
    (
        QuotaWaits(ENQUEUED, QuotaFull("root/nlp", "cpu", 1, 0, 2)),
        f"{WAITS}; queue root/nlp may hold 1 CPU; this job asks for 2 CPUs and never starts",
    ),
    (NoQueue("nlp"), "waits for a queue to release it; no queue of the quota tree has project nlp"),
    (EvictionPending((JOB,), None), "job 4711 is being preempted for it, soon"),
    (EvictionPending((JOB, JobId(4712)), None), "job 4711 and job 4712 are being preempted for it, soon"),
    (SuspendedReason("ann"), "was suspended by ann"),
    (
        SuspendedReason("", (JOB, JobId(0))),
        "was preempted by job 4711 and job -; it resumes when its CPUs are free again",
    ),
    (BehindHead(JOB), "nothing passes job 4711, which is first and waits"),
    (refuses(RULE.STATE, "down"), "partition short is down and starts nothing"),
    (refuses(RULE.MAX_TIME, "86400", "172800"), "asks for 2 d; partition short allows 1 d"),
    (refuses(RULE.MIN_NODES, "2", "1"), "asks for 1 node; partition short serves at least 2"),
    (refuses(RULE.MAX_NODES, "2", "5"), "asks for 5 nodes; partition short serves at most 2"),
    (refuses(RULE.ACCOUNT, "nlp", "bio"), "partition short does not serve account bio; it serves nlp"),
    (refuses(RULE.ACCOUNT, "", ""), "partition short does not serve account (none); it excludes it"),
    (refuses(RULE.QOS, "", "high"), "partition short does not serve QOS high; it excludes it"),
    (refuses(RULE.USER, "ann, bob", "eve"), "partition short does not serve user eve; it serves ann, bob"),
    (
        LimitReached("account nlp", "GrpTRES", "gres/gpu", 32, 30, 4),
        "limit GrpTRES=gres/gpu of account nlp is 32; 30 in use, 4 asked",
    ),
    (
        LimitReached("qos high", "MaxWall", "", 600, 0, 3600),
        "limit MaxWall of qos high is 10 min; this job asks for 1 h and never starts",
    ),
    (
        LimitReached("account nlp", "GrpTRES", "mem", 65536, 49152, 32768),
        "limit GrpTRES=mem of account nlp is 64G; 48G in use, 32G asked",
    ),
    (
        LimitReached("account nlp", "GrpTRESMins", "mem", 65536, 49152.5, 32768),
        "limit GrpTRESMins=mem of account nlp is 64G min; 48G min in use, 32G min asked",
    ),
    (
        LimitReached("account nlp", "GrpTRESMins", "gres/gpu", 6000, 6000.123456, 240),
        "limit GrpTRESMins=gres/gpu of account nlp is 6000 min; 6000.1 min in use, 240 min asked",
    ),
    (LimitReached("QOS high", "MaxJobs", "", 2, 2, 1), "limit MaxJobs of QOS high is 2; 2 in use, 1 asked"),
    (
        LimitReached("user ann of account nlp", "MaxTRESPerUser", "cpu", 8, 0, 9),
        "limit MaxTRESPerUser=cpu of user ann of account nlp is 8; this job asks for 9 and never starts",
    ),
    (NoAssociation("bob"), "bob has no association, and this cluster serves no one without"),
    (NoAssociation("bob", "nlp"), "bob has no association in account nlp, and this cluster serves no one without"),
    (
        NoAssociation("bob", "nlp", "gpu"),
        "bob has no association in account nlp for partition gpu, and this cluster serves no one without",
    ),
    (QosRefused("high", ("normal",)), "may not use QOS high; allowed: normal"),
    (QosRefused("high", ()), "may not use QOS high; allowed: none"),
    (InReservation("course"), "reservation course is over, not there, or not for its owner"),
    (InReservation("course", LATER), "reservation course begins at 13:00"),
    (
        NodesReserved("upkeep", LATER, LATEST),
        "would run into reservation upkeep; its nodes are reserved from 13:00 to 15:00",
    ),
]


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES])
@pytest.mark.req("SC-03", "SC-10", "SC-13")
def test_every_rule_has_its_sentence(reason: Reason, sentence: str) -> None:
    assert reason_sentence(reason, NOW, UTC) == sentence


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_names_in_rules_are_escaped(hostile: str) -> None:
    reasons: list[Reason] = [
        PartitionRefuses(hostile, RULE.ACCOUNT, hostile, hostile),
        PartitionRefuses(hostile, RULE.STATE, hostile),
        LimitReached(hostile, "GrpTRES", hostile, 1, 1, 1),
        NoAssociation(hostile, hostile, hostile),
        QosRefused(hostile, (hostile,)),
        InReservation(hostile),
        NodesReserved(hostile, LATER, LATEST),
        QuotaWaits(QueueWaits(hostile, hostile, hostile, hostile), QuotaMaxJobs(hostile, 1)),
        QuotaWaits(QueueWaits("q", "q"), QuotaFull(hostile, hostile, 2, 1, 2), ((hostile, 1),)),
    ]
    assert all(is_harmless(reason_sentence(reason, NOW, UTC)) for reason in reasons)
