"""The sentences of what happens to rules, and to jobs by them."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model import events
from cockpit.model.accounts import Association, Qos
from cockpit.model.catalogue import VolumeEntry
from cockpit.model.cluster import Cluster, Partition, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.present.events.sentences import event_sentence
from tests.doubles.samples import HOUR, NOW

JOB = JobId(7)
AFTER = Dependency(DependencyKind.AFTER_OK, JobId(4))
TASK = Dependency(DependencyKind.AFTER_OK, JobId(4), 2)
KEPT = Reservation(name="upkeep", start_at=NOW, end_at=Millis(NOW + HOUR), nodes=(NodeName("n1"),))
VOLUME = VolumeEntry(name="a", path="/a")
TREE = QuotaNode(name="root", children=(QuotaNode(name="a"), QuotaNode(name="b")))

SENTENCES: list[tuple[events.EventBody, str]] = [
    (events.ClusterConfigured(Cluster()), "the cluster was configured"),
    (
        events.ClusterConfigured(Cluster(partitions=(Partition(name="cpu"), Partition(name="gpu")))),
        "the cluster was configured with partitions cpu and gpu",
    ),
    (events.AccountsChanged(), "the accounts stayed as they were"),
    (
        events.AccountsChanged(associations=(Association(account="nlp", user="ann"),), qos=(Qos(name="high"),)),
        "set: nlp/ann; QOS set: high",
    ),
    (events.AccountsChanged(removed_qos=("low",)), "QOS removed: low"),
    (events.CatalogueChanged(), "the catalogue stayed as it was"),
    (
        events.CatalogueChanged((VOLUME, replace(VOLUME, name="b\x1b")), (replace(VOLUME, name="c"),)),
        "written into the catalogue: volume a and volume b\\x1b; taken out of the catalogue: volume c",
    ),
    (events.ReservationMade(KEPT), "reservation upkeep reserves 1 node from 12:00 to 13:00"),
    (events.ReservationEnded("upkeep"), "reservation upkeep ended"),
    (events.CopyRemoved("image", "/x.tar", "4f2a"), "the copy of image /x.tar was removed"),
    (events.NodeDrained(NodeName("n1"), "root", "fan"), "node n1 was drained by root: fan"),
    (
        events.PricesChanged({NodeName("n1"): 320, NodeName("n2"): 500}),
        "prices changed: n1 costs 0.32, n2 costs 0.5",
    ),
    (
        events.PricesChanged({NodeName(f"n{number}"): 1000 for number in range(7)}),
        "prices changed: n0 costs 1, n1 costs 1, n2 costs 1, n3 costs 1, n4 costs 1 and 2 more nodes",
    ),
    (events.PricesChanged({}), "the labels of the nodes are their prices again"),
    (events.NodeResumed(NodeName("n1"), "root"), "node n1 was returned to service by root"),
    (
        events.PrologFailed(JOB, 1, 0, NodeName("n1"), "prolog 1 ended with 1 on n1"),
        "is queued again: prolog 1 ended with 1 on n1",
    ),
    (events.QuotaApplied(QuotaTree("teams", TREE)), "quota tree teams was applied, with 2 leaves"),
    (events.QuotaApplied(QuotaTree("teams", TREE.children[0])), "quota tree teams was applied, with 1 leaf"),
    (events.QuotaRemoved("teams"), "quota tree teams was removed"),
    (events.UsageDecayed(), "usage was counted and decayed"),
    (events.UsageDecayed(reset=True), "usage was set to nothing for a new period"),
    (events.DependencyMet(JOB, AFTER), "no longer waits for afterok of 4"),
    (events.DependencyMet(JOB, TASK), "no longer waits for afterok of 4_2"),
    (
        events.DependencyFailed(JOB, TASK, JobId(6)),
        "can never start: afterok of 4_2 will not come true, because it ended so",
    ),
    (
        events.DependencyFailed(JOB, AFTER, JobId(6)),
        "can never start: afterok of 4 will not come true, because 6 ended so",
    ),
    (
        events.DependencyFailed(JOB, AFTER, JobId(4)),
        "can never start: afterok of 4 will not come true, because it ended so",
    ),
    (events.AgeBegan(JOB), "may start from now on; its age counts"),
    (events.SiteFactorSet(JOB, 50), "has 50 added to its priority"),
    (events.PrioritySet(JOB, 900), "was given priority 900"),
    (events.PrioritySet(JOB, None), "has its own priority again"),
]


def record(body: events.EventBody) -> events.EventRecord:
    return events.EventRecord(seq=1, at=NOW, actor="ann", origin="socket", body=body)


@pytest.mark.parametrize(("body", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES])
def test_every_event_of_the_rules_has_its_sentence(body: events.EventBody, sentence: str) -> None:
    assert event_sentence(record(body), UTC) == sentence
