"""Converts slurmrestd's configuration, nodes, partitions, reservations and licences to records of `scontrol show`."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.rest.figures import Json, at, figure, minutes, moment, word


def config(meta: object, cluster: str) -> Record:
    """Return the settings that slurmrestd reports, and a careful assumption where it reports none.

    Some data count as private, since answers that are private must not be shared. Priorities count as changing while
    jobs wait, since a plan guarantees a latest start only where they do not; their weights are unknown.
    `cluster`: the cluster's name for versions that do not report it.
    """
    version = at(meta, "Slurm") or at(meta, "slurm")
    return {
        "ClusterName": word(at(version, "cluster")) or cluster,
        "SLURM_VERSION": word(at(version, "release")),
        "PrivateData": "unknown",
        "PriorityType": "priority/multifactor",
    }


def node(json: Json) -> Record:
    """Return a node in the form of `scontrol show node`."""
    return {
        "NodeName": word(json.get("name")),
        "NodeHostName": word(json.get("hostname")),
        "CPUEfctv": figure(json.get("effective_cpus")),
        "CPUTot": figure(json.get("cpus")),
        "Gres": word(json.get("gres")),
        "GresUsed": word(json.get("gres_used")),
        "RealMemory": figure(json.get("real_memory")),
        "MemSpecLimit": figure(json.get("specialized_memory")),
        "State": _node_state(json),
        "OS": word(json.get("operating_system")),
        "Reason": word(json.get("reason")),
    }


def _node_state(json: Json) -> str:
    """Return `MIXED+PLANNED`; v0.0.38 has the flags beside the state."""
    flags = [json.get("state"), json.get("state_flags")]
    return "+".join(word(each).replace(",", "+").upper() for each in flags if each) or "UNKNOWN"


def partition(json: Json) -> Record:
    """Return the record of a partition, whose JSON is flat in v0.0.38 and nested later."""

    def first(*places: tuple[str, ...]) -> object:
        return next((value for place in places if (value := at(json, *place)) is not None), None)

    flags = word(first(("flags",), ("partition", "flags"))).lower()
    return {
        "PartitionName": word(json.get("name")),
        "AllowAccounts": word(first(("allowed_accounts",), ("accounts", "allowed"))),
        "DenyAccounts": word(first(("denied_accounts",), ("accounts", "deny"))),
        "AllowQos": word(first(("allowed_qos",), ("qos", "allowed"))),
        "DenyQos": word(first(("denied_qos",), ("qos", "deny"))),
        "Default": "YES" if "default" in flags.split(",") else "NO",
        "QoS": _text_or_named(json.get("qos"), "assigned"),
        "DefaultTime": minutes(first(("default_time_limit",), ("defaults", "time"))),
        "MaxTime": minutes(first(("max_time_limit",), ("maximums", "time"))),
        "MinNodes": figure(first(("min nodes per job",), ("minimums", "nodes"))),
        "MaxNodes": _bound(first(("maximum_nodes_per_job",), ("maximums", "nodes"))),
        "Nodes": _text_or_named(json.get("nodes"), "configured"),
        "PriorityJobFactor": figure(first(("priority_job_factor",), ("priority", "job_factor"))),
        "PriorityTier": figure(first(("priority_tier",), ("priority", "tier"))),
        "GraceTime": figure(first(("preemption_grace_time",), ("grace_time",))),
        "State": word(first(("state",), ("partition", "state"))).split(",")[0],
        "TRESBillingWeights": word(first(("billing_weights",), ("tres", "billing_weights"))),
    }


def _text_or_named(value: object, name: str) -> str:
    """Return a text, which later versions have under this name."""
    return word(value.get(name) if isinstance(value, Mapping) else value)


def _bound(value: object) -> str:
    """Return the most nodes; v0.0.38 has -1 where there is no bound."""
    bound = figure(value)
    return "" if bound.startswith("-") else bound


def reservation(json: Json) -> Record:
    """Return a reservation in the form of `scontrol show reservation`."""
    return {
        "ReservationName": word(json.get("name")),
        "StartTime": moment(json.get("start_time")),
        "EndTime": moment(json.get("end_time")),
        "Nodes": word(json.get("node_list")),
        "Users": word(json.get("users")),
        "Accounts": word(json.get("accounts")),
        "Flags": word(json.get("flags")),
    }


def licence(json: Json) -> Record:
    return {name: word(json.get(name)) for name in ("LicenseName", "Total", "Used")}
