"""Elastic quotas. Sources: ElasticQuotaSpec and ElasticQuotaStatus of scheduling.x-k8s.io/v1alpha1 (scheduler-plugins)
and scheduling.sigs.k8s.io/v1alpha1 (Koordinator), which have the same kind name and fields."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Quantities


class ElasticQuotaSpec(msgspec.Struct, frozen=True):
    """The bounds of a quota."""

    min: Quantities | None = None
    """The guaranteed amounts."""
    max: Quantities | None = None
    """The largest amounts; absent: without bound."""


class ElasticQuotaStatus(msgspec.Struct, frozen=True):
    """The use of a quota."""

    used: Quantities | None = None


class ElasticQuota(msgspec.Struct, frozen=True):
    """A quota: of its namespace (scheduler-plugins), or a node of a tree (Koordinator)."""

    metadata: ObjectMeta
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()
