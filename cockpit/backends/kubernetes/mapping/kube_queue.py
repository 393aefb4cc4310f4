"""A job's turn in a queue of KubeQueue: whether it waits, where, and before whom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cockpit.backends.kubernetes.objects.kube_queue import KubeQueue, QueueUnit
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.quota import SEPARATOR
from cockpit.model.reasons import Held

KUBE_QUEUE = "KubeQueue"
QUOTA_LABELS = ("quota.scheduling.alibabacloud.com/name", "quota.scheduling.koordinator.sh/name")
"""Labels of jobs and queue units that name a node of the quota tree, instead of the one that has their namespace."""
_DEQUEUED = frozenset({"Dequeued", "SchedSucceed", "Running", "Succeed", "Failed"})
"""Phases after the queue; all but the first tell how the scheduling of the job's pods went."""
_RESERVED = frozenset({"Reserved", "SchedReady"})
"""Phases in which Koord-Queue keeps the quota for a job that waits for admission checks, or for reserved nodes."""
_QUEUE_NAME = "kube-queue/queue-name"
"""Annotation of a queue unit."""
_QUOTA_OF_QUEUE = "kube-queue/quota-fullname"
"""Annotation of a queue that was made for a node of the quota tree, with the node's path."""
_SUFFIX = re.compile(r"-[a-z0-9]{5}")
"""What the API server adds to a generated name."""
_LONGEST = 400
_SAYS_NOTHING = "the queueunit is enqueued after created"
"""The message of a queue unit that was not looked at yet, and of one that is tried again and again."""


class QueueId(NamedTuple):
    """A queue of KubeQueue."""

    name: str
    home: str = ""
    """Its namespace, where each namespace has a queue of its own; empty: it is for the jobs of any namespace."""


class QueueTurn(NamedTuple):
    """A job in a queue of KubeQueue."""

    unit: QueueUnit | None
    """Its queue unit; None: KubeQueue has not made one yet."""
    queue_id: QueueId
    leaf: str
    """The path of the job's node in the quota tree; empty: none."""

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self.queue_id.name

    @property
    def waits(self) -> bool:
        """Whether the queue keeps the job back. Unknown phases count as such: new ones are those before the start."""
        return self.unit is None or self.is_held or self.unit.phase not in _DEQUEUED

    @property
    def has_quota(self) -> bool:
        """Whether it keeps its quota while it waits."""
        return self.unit is not None and not self.is_held and self.unit.phase in _RESERVED

    @property
    def is_held(self) -> bool:
        """Whether a user keeps it from having its turn."""
        return self.unit is not None and self.unit.spec.active is False

    @property
    def priority(self) -> int | None:
        return self.unit.spec.priority if self.unit is not None else None

    def order(self, created_at: Millis, name: str) -> tuple[int, Millis, str]:
        """Return the key by which a queue is ordered: priority, the first attempt, the name.

        KubeQueue attempts a unit as soon as it was made, and remembers the moment nowhere. `created_at` and `name`: of
        the job, as long as it has no unit.
        """
        meta = self.unit.metadata if self.unit is not None else None
        since = meta.created_at if meta is not None else created_at
        return -(self.priority or 0), since, meta.name if meta is not None else name


def queue_reason(turn: QueueTurn) -> QueueWaits | Held:
    """Return why the queue keeps the job back, in KubeQueue's words."""
    if turn.unit is None:
        return QueueWaits(KUBE_QUEUE, turn.queue)
    if turn.is_held:
        return Held("its queue unit", None)
    message = turn.unit.message
    words = "" if message == _SAYS_NOTHING else message[:_LONGEST]
    return QueueWaits(KUBE_QUEUE, turn.queue, turn.unit.phase or "Enqueued", words)


def queue_of(unit: QueueUnit | None, namespace: str, leaf: str, queues: Iterable[KubeQueue]) -> QueueId:
    """Return a job's queue: the one that its unit names, else that of its node in the quota tree, else the one of its
    namespace. Without any of these KubeQueue takes the namespace as the name."""
    every = sorted(queues, key=lambda each: each.metadata.name)
    own = next((each for each in every if each.metadata.namespace == namespace), None)
    home = namespace if own is not None else ""
    if unit is not None and (named := unit.spec.queue or unit.metadata.annotation(_QUEUE_NAME)):
        return QueueId(named, home)
    if leaf and (found := queue_of_node(leaf, every)) is not None:
        return QueueId(found.metadata.name)
    return QueueId(own.metadata.name, home) if own is not None else QueueId(leaf or namespace)


def queue_of_node(path: str, queues: Iterable[KubeQueue]) -> KubeQueue | None:
    """Return the queue that KubeQueue has made for a node of the quota tree, such as `root-child-2-v5zxz`."""
    prefix = path.replace(SEPARATOR, "-")
    for each in queues:
        of_quota = each.metadata.annotation(_QUOTA_OF_QUEUE)
        name = each.metadata.name
        if of_quota == path or (not of_quota and name.startswith(prefix) and _SUFFIX.fullmatch(name[len(prefix) :])):
            return each
    return None
