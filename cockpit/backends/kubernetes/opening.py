"""Opens the cluster of a context of the user's kubeconfig."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.connected_cluster import ContextOptions
from cockpit.backends.kubernetes.fleet.members import own_context
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.backends.kubernetes.wire.kubeconfig import config_files, context_named, contexts
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.observed_history import history_file


def open_context(
    name: str, env: Mapping[str, str], seen: Path | None = None, namespaces: tuple[str, ...] = ()
) -> KubernetesBackend:
    """Open a context. Raises `CockpitError` where the kubeconfig has no such context.

    `seen`: the folder for what was seen of jobs, beside which manifests of requeued jobs are; None: it is forgotten
    when cockpit ends. `namespaces`: those that are
    read; empty: all that the user may list.
    """
    context = context_named(name, env)
    files, clock = config_files(env), SystemClock()

    def connect() -> Api:
        return Api(Connection(name, files, clock.now))

    def reach_member(member: str, address: str) -> Callable[[], Api] | None:
        own = own_context(member, address, contexts(env))
        return (lambda: Api(Connection(own, files, clock.now))) if own else None

    chance = Random()  # noqa: S311 - spreads retries over time
    history = history_file(seen, name, f"{context.server} {context.user}") if seen is not None else None
    manifests = seen.parent / "requeued" if seen is not None else None
    options = ContextOptions(history, namespaces, manifests, reach_member)
    return KubernetesBackend(name, connect, context.namespace, clock, chance, context.user, options)
