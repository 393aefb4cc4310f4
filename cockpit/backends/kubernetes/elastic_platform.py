"""What a cluster has of Alibaba's elastic training, and what its absence means for jobs that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.elastic_training import (
    SUPERVISOR_NAMESPACE,
    missing_operator,
    missing_supervisor,
    release_of,
)
from cockpit.backends.kubernetes.resources import SECRETS, TRAINING_JOBS
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.model.pod_reasons import PodsNotCreated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.mapping.elastic_training import ArenaRelease
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.ids import Millis
    from cockpit.model.reasons import Reason
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.clock import Timekeeper

_RELEASES = (("labelSelector", "owner=helm,status=deployed"),)
_LEARN_AGAIN_MS = 300_000


class ElasticPlatform:
    """The operator, the job supervisor, and the release that installs them, as far as the user may see them."""

    def __init__(self, api: Api, inventory: Inventory, clock: Timekeeper) -> None:
        self._api, self._inventory, self._clock = api, inventory, clock
        self._release: ArenaRelease | None = None
        self._learned_at: Millis | None = None

    async def learn(self) -> None:
        """Read which version is installed, where that is not known since a few minutes and the user may know it."""
        now = self._clock.now()
        is_known = self._learned_at is not None and now < self._learned_at + _LEARN_AGAIN_MS
        if is_known or not self._sees_supervisor:
            return
        self._learned_at = now
        try:
            listed = await self._api.get(SECRETS.path(SUPERVISOR_NAMESPACE), _RELEASES)
        except ApiError:
            # Few users may read Helm's Secrets. What runs is known from the pods.
            self._release = None
            return
        self._release = release_of(msgspec.json.decode(listed, type=dict[str, Any]).get("items") or ())

    @property
    def missing(self) -> str:
        """What is wrong with the job supervisor, as a sentence; empty: nothing, or the user may not see it."""
        return missing_supervisor(self._inventory.jobs.pods(), self._release) if self._sees_supervisor else ""

    def refusals(self, specs: Sequence[JobSpec]) -> list[str]:
        """Return a line for each job that needs the supervisor where it does not run, led by the path of the field."""
        missing = self.missing
        return [
            f"jobs[{place}].elastic.spot: {missing} Submit the job without `spot`, which needs it."
            for place, spec in enumerate(specs)
            if missing and spec.elastic is not None and spec.elastic.spot and TRAINING_JOBS in self._inventory.served
        ]

    def with_missing(self, job: KubeJob | None, reason: Reason) -> Reason:
        """Return the reason why a TrainingJob has no pods, with the part of the platform that it waits for."""
        is_training = job is not None and job.workload is not None and job.workload.spec.et_replica_specs
        if not is_training or not isinstance(reason, PodsNotCreated):
            return reason
        assert job is not None
        if job.is_short_of_workers:
            missing = self.missing and f"nothing resumes it: {self.missing.partition(',')[0]}"
        else:
            sees_all = self._inventory.namespaces == ("",)
            missing = missing_operator(self._inventory.jobs.pods()) if sees_all else ""
        return replace(reason, message="; ".join(filter(None, (reason.message, missing))))

    @property
    def _sees_supervisor(self) -> bool:
        seen = {"", SUPERVISOR_NAMESPACE} & {*self._inventory.namespaces}
        return TRAINING_JOBS in self._inventory.served and bool(seen)
