"""Opens the cluster of a context of the user's kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.backends.kubernetes.wire.kubeconfig import config_files, context_named
from cockpit.runtime.clock import SystemClock


def open_context(name: str, env: Mapping[str, str]) -> KubernetesBackend:
    """Open a context. Raises `CockpitError` where the kubeconfig has no such context."""
    context = context_named(name, env)
    files, clock = config_files(env), SystemClock()

    def connect() -> Api:
        return Api(Connection(name, files, clock.now))

    chance = Random()  # noqa: S311 - spreads retries over time
    return KubernetesBackend(name, connect, context.namespace, clock, chance, context.user)
