"""What cockpit makes of the objects that a running Volcano wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.mapping.rows import row_of
from cockpit.backends.kubernetes.mapping.volcano import CLOSED, volcano_queue_rows
from cockpit.backends.kubernetes.objects.gang import PodGroup
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.volcano import VolcanoQueue
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.backends.kubernetes.resources import VOLCANO_JOBS
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.spec import Access
from cockpit.present.reasons import reason_sentence

RECORDED = json.loads((Path(__file__).parent / "recorded/volcano.json").read_text())

IN_GROUP = "pod group is ready, 1 Pending, 1 minAvailable, 2 Running; Pending: 1 Unschedulable"


@pytest.fixture
def recorded(inventory: Inventory) -> Inventory:
    """The recorded objects in an order in which a server may list them."""
    lists: tuple[tuple[str, type, Any], ...] = (
        ("jobs", Workload, lambda old, new: inventory.jobs.workload_changed(VOLCANO_JOBS, old, new)),
        ("pods", Pod, inventory.jobs.pod_changed),
        ("queues", VolcanoQueue, inventory.schedulers.queue_changed),
        ("podgroups", PodGroup, inventory.schedulers.group_changed),
        ("nodes", KubeNode, inventory._node_changed),
    )
    for name, kind, changed in lists:
        for each in RECORDED[name]:
            changed(None, msgspec.convert(each, kind, strict=False))
    return inventory


def gang(pods: int) -> str:
    return f"starts with {pods} pods or not at all; 0 of them have a node"


def rows(inventory: Inventory) -> Iterator[JobRow]:
    for _, job in inventory.jobs.take_changes():
        if job is not None:
            yield row_of(job, JobId(1), lambda _: "", Access.RW)


@pytest.mark.req("KU-03", "KU-04", "KU-05")
def test_each_job_has_the_state_and_the_reason_that_volcano_gives_it(recorded: Inventory) -> None:
    found = {row.name: row for row in rows(recorded)}
    said = {
        name: (row.state, "" if row.reason is None else reason_sentence(row.reason, Millis(0), UTC))
        for name, row in found.items()
    }
    none_fits = "of 5 nodes 4 have too little free nvidia.com/gpu, 1 has taints that it does not tolerate"
    assert said == {
        "fits": (JobState.RUNNING, ""),
        "insmall": (JobState.RUNNING, ""),
        # It needs one of its three pods, so that the scheduler alone keeps the last one back.
        "some": (
            JobState.RUNNING,
            f"no node for 1 of its 3 pods; {IN_GROUP}",
        ),
        "good": (JobState.SUCCEEDED, ""),
        "failed": (JobState.ERROR, ""),
        "aborted": (JobState.QUEUED, "held by AbortJob of Volcano"),
        "policy": (JobState.QUEUED, "held by AbortJob of Volcano"),
        "large": (
            JobState.QUEUED,
            f"{gang(4)}; 4 have no node (large-worker-0, large-worker-1, large-worker-2 and others)",
        ),
        "overlate": (
            JobState.QUEUED,
            "no node for its pod; pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable",
        ),
        "wide": (
            JobState.QUEUED,
            f"{gang(2)}; 2 have no node (wide-master-0 and wide-worker-0): {none_fits}",
        ),
        "late": (JobState.QUEUED, "Volcano lets no job out of queue shut, which is closed"),
        "over": (JobState.QUEUED, "waits for its turn in Volcano's queue small"),
        "turn": (JobState.QUEUED, "waits for its turn in Volcano's queue default"),
        "nowhere": (JobState.QUEUED, "Volcano has no queue nowhere"),
    }
    assert (found["failed"].exit_code, found["failed"].failed) == (3, (1, 3))
    assert (found["wide"].card_milli, found["wide"].partitions) == (17_000, ("default",))


@pytest.mark.req("KU-04")
def test_the_jobs_of_queues_are_counted_by_their_pod_groups(recorded: Inventory) -> None:
    schedulers = recorded.schedulers
    found = {row.path: row for row in volcano_queue_rows(schedulers.queues.values(), schedulers.groups.values())}
    assert {path: (row.waiting, row.running, row.stopped) for path, row in found.items()} == {
        "root": (0, 0, ""),
        "root/busy": (0, 0, CLOSED),
        "root/default": (3, 2, ""),
        "root/shut": (1, 0, CLOSED),
        "root/small": (2, 1, ""),
    }
    assert found["root/small"].used == {"cpu": 1000, "mem": 0, "gres/gpu": 4000}
    assert found["root/small"].max == {"cpu": 10_000, "gres/gpu": 10_000}
