"""What a Kubernetes cluster can do for a user, and the reason for each thing that it cannot."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cockpit.backends.kubernetes.resources import LISTED_QUEUES, NODES, QUOTA_TREES, Resource
from cockpit.model.capabilities import NO_COMMANDS, NO_FLEET, NO_REQUEST_IDS, ONE_CLUSTER, Ability, Capabilities

_NO_ACCOUNTS = "Kubernetes has no accounts; namespaces and their quotas take their place."
_NO_CATALOGUE = "A Kubernetes cluster has no catalogue."
_NO_STAGING = "A Kubernetes cluster has no staged copies."
_NO_RESERVATIONS = "Kubernetes has no advance reservations."
NO_WEIGHTS = "Kubernetes has no priority weights: a job's priority is the number of its PriorityClass."
NO_HOST_IMAGE = "a pod needs an image; a Kubernetes node's own file system is none"

CAPABILITIES = Capabilities(
    {
        "accounts": _NO_ACCOUNTS,
        "unblock": "Jobs on Kubernetes have no block lists.",
        "change_accounts": _NO_ACCOUNTS,
        "set_weights": NO_WEIGHTS,
        "catalogue": _NO_CATALOGUE,
        "change_catalogue": _NO_CATALOGUE,
        "staged": _NO_STAGING,
        "unstage": _NO_STAGING,
        "make_reservation": _NO_RESERVATIONS,
        "end_reservation": _NO_RESERVATIONS,
        "request": NO_REQUEST_IDS,
        "fleet": NO_FLEET,
        Ability.COMMANDS: NO_COMMANDS,
        Ability.CLUSTERS: ONE_CLUSTER,
        Ability.SCRIPTS: "Kubernetes takes no batch scripts; `cockpit convert --to` makes a manifest of one.",
        Ability.SIGNALS: "Kubernetes sends no signals to a job's processes.",
        Ability.UPDATE: "Only Slurm has `scontrol update`.",
        Ability.TOP: "Only Slurm has `scontrol top`.",
        Ability.STEPS: "Only jobs of a Slurm cluster have steps; --replica chooses one of several pods.",
        Ability.MERGED_LOGS: "Kubernetes stores stdout and stderr of a container as one log, in the order in which "
        "they were written; it does not tell them apart.",
        Ability.EVERY_EVENT: "What a cockpit saw while it was connected; Kubernetes forgets its events after an hour.",
        Ability.EVERY_END: "Kubernetes forgets a job with its object: counted are the ended jobs that it still "
        "has, and those that this cockpit saw go.",
        Ability.ENVIRONMENT: "Environment variables may hold secrets; cockpit reads them of no pod.",
        Ability.REQUEST_IDS: NO_REQUEST_IDS,
        Ability.WEIGHTS: NO_WEIGHTS,
        Ability.PAUSE: "Kubernetes deletes the pods of a suspended job, with what they wrote into their own file "
        "systems; resumed, it begins anew from what it saved on volumes.",
        Ability.HOST_IMAGE: NO_HOST_IMAGE,
        Ability.LOCAL_FILES: "A Kubernetes cluster's pods see no folder of this machine.",
    }
)


_QUOTA_TREE = (Ability.QUOTA_TREE, "apply_quota", "remove_quota")


def without_rights(
    capabilities: Capabilities, absent: Mapping[Resource, str], queue_kinds: Collection[Resource] | None
) -> Capabilities:
    """Return the capabilities without what the user may not read, or the cluster lacks.

    `absent`: the server's words by kind of object. `queue_kinds`: the kinds of queue managers that the cluster serves;
    None: not known yet.
    """
    missing: dict[str, str] = {}
    if NODES in absent:
        missing["nodes"] = f"Nodes cannot be listed: {absent[NODES]}"
    if queue_kinds is not None and QUOTA_TREES not in queue_kinds:
        words = f"This cluster has no quota trees: it does not serve {QUOTA_TREES.shown}."
        missing |= dict.fromkeys(_QUOTA_TREE, words)
    elif QUOTA_TREES in absent:
        missing |= dict.fromkeys(_QUOTA_TREE, f"Quota trees cannot be read: {absent[QUOTA_TREES]}")
    if queue_kinds is not None and (why := _no_queues(queue_kinds, absent)):
        missing["queues"] = why
    return capabilities.without(missing)


def _no_queues(kinds: Collection[Resource], absent: Mapping[Resource, str]) -> str:
    """Return why there are no queues for the user; empty: there are, or none is made yet."""
    served = [each for each in LISTED_QUEUES if each in kinds]
    if not served:
        return "This cluster has no queues: it serves none of Kueue, KubeQueue, Volcano and elastic quotas."
    return f"Queues cannot be listed: {absent[served[0]]}" if all(each in absent for each in served) else ""


def of_fleet_host(capabilities: Capabilities) -> Capabilities:
    """Return the capabilities of a cluster that sends its jobs to the members of a fleet."""
    absent = {name: why for name, why in capabilities.absent.items() if name != "fleet"}
    # The pods, whose end a requeue waits for, are on the members.
    again = "A fleet's host sees no pods of a job, so it cannot begin anew; cancel it and submit a copy (`clone`)."
    return Capabilities({**absent, "requeue": again})
