"""Nodes, partitions and reservations of slurmrestd, as `scontrol show` prints them; and what little it tells of the
cluster's configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cockpit.backends.slurm.mapping.rest.figures import NONE, Record, at, count, figure, minutes, moment, tres, word

Pairs = Iterable[tuple[str, str]]


def config(meta: object, cluster: str) -> str:
    """`Name = value` lines. slurmrestd tells no weights and no policies, nor what is hidden from whom."""
    version = at(meta, "Slurm") or at(meta, "slurm")
    name = word(at(version, "cluster")) or cluster
    return f"ClusterName = {name}\nSLURM_VERSION = {word(at(version, 'release'))}\nPrivateData = unknown\n"


def nodes(records: Iterable[Record]) -> str:
    """Return one line per node. Text of users comes last, so that what looks like a key in it is none."""
    return "".join(_line(_node(each)) for each in records)


def _node(node: Record) -> Iterator[tuple[str, str]]:
    yield "NodeName", word(node.get("name"))
    yield "NodeHostName", word(node.get("hostname"))
    yield "CPUAlloc", figure(node.get("alloc_cpus"))
    yield "CPUEfctv", figure(node.get("effective_cpus")) or figure(node.get("cpus"))
    yield "CPUTot", figure(node.get("cpus"))
    yield "CPULoad", f"{count(node.get('cpu_load')) / 100:.2f}"
    yield "AvailableFeatures", word(node.get("features")) or "(null)"
    yield "ActiveFeatures", word(node.get("active_features")) or "(null)"
    yield "Gres", word(node.get("gres")) or "(null)"
    yield "GresUsed", word(node.get("gres_used"))
    yield "Version", word(node.get("slurmd_version")) or word(node.get("version"))
    yield "RealMemory", figure(node.get("real_memory"))
    yield "AllocMem", figure(node.get("alloc_memory"))
    yield "FreeMem", figure(node.get("free_mem")) or figure(node.get("free_memory"))
    yield "MemSpecLimit", figure(node.get("specialized_memory")) or "0"
    yield "State", _node_state(node)
    yield "Weight", figure(node.get("weight"))
    yield "Partitions", word(node.get("partitions"))
    yield "BootTime", moment(node.get("boot_time"))
    yield "CfgTRES", tres(node.get("tres"))
    yield "AllocTRES", tres(node.get("tres_used"))
    yield "OS", word(node.get("operating_system"))
    yield "Reason", word(node.get("reason")) or "(null)"


def _node_state(node: Record) -> str:
    """`MIXED+PLANNED`; v0.0.38 tells the flags beside the state."""
    flags = [node.get("state"), node.get("state_flags")]
    return "+".join(word(each).replace(",", "+").upper() for each in flags if each) or "UNKNOWN"


def partitions(records: Iterable[Record]) -> str:
    """Return one line per partition."""
    return "".join(_line(_partition(each)) for each in records)


def _partition(part: Record) -> Iterator[tuple[str, str]]:
    def first(*places: tuple[str, ...]) -> object:
        return next((value for place in places if (value := at(part, *place)) is not None), None)

    flags = word(first(("flags",), ("partition", "flags"))).lower()
    nodes_of = part.get("nodes")
    yield "PartitionName", word(part.get("name"))
    yield "AllowAccounts", word(first(("allowed_accounts",), ("accounts", "allowed"))) or "ALL"
    yield "DenyAccounts", word(first(("denied_accounts",), ("accounts", "deny")))
    yield "AllowQos", word(first(("allowed_qos",), ("qos", "allowed"))) or "ALL"
    yield "DenyQos", word(first(("denied_qos",), ("qos", "deny")))
    yield "AllowGroups", word(first(("allowed_groups",), ("groups", "allowed"))) or "ALL"
    yield "Default", "YES" if "default" in flags.split(",") else "NO"
    qos = part.get("qos")
    yield "QoS", word(at(qos, "assigned") if isinstance(qos, dict) else qos) or NONE
    yield "DefaultTime", minutes(first(("default_time_limit",), ("defaults", "time"))) or "NONE"
    yield "MaxTime", minutes(first(("max_time_limit",), ("maximums", "time"))) or "UNLIMITED"
    yield "MinNodes", figure(first(("min nodes per job",), ("minimums", "nodes"))) or "0"
    yield "MaxNodes", _bound(first(("maximum_nodes_per_job",), ("maximums", "nodes")))
    yield "Nodes", word(at(nodes_of, "configured") if isinstance(nodes_of, dict) else nodes_of)
    yield "PriorityJobFactor", figure(first(("priority_job_factor",), ("priority", "job_factor")))
    yield "PriorityTier", figure(first(("priority_tier",), ("priority", "tier")))
    yield "GraceTime", figure(first(("preemption_grace_time",), ("grace_time",)))
    yield "State", word(first(("state",), ("partition", "state"))).split(",")[0] or "UP"
    yield "TRESBillingWeights", word(first(("billing_weights",), ("tres", "billing_weights")))
    tres = part.get("tres")
    yield "TRES", word(at(tres, "configured") if isinstance(tres, dict) else tres)


def _bound(value: object) -> str:
    """v0.0.38 has -1 for no bound."""
    bound = figure(value)
    return "UNLIMITED" if bound.startswith("-") or not bound else bound


def reservations(records: Iterable[Record]) -> str:
    """Return one line per reservation."""
    return "".join(_line(_reservation(each)) for each in records)


def _reservation(record: Record) -> Iterator[tuple[str, str]]:
    yield "ReservationName", word(record.get("name"))
    yield "StartTime", moment(record.get("start_time"))
    yield "EndTime", moment(record.get("end_time"))
    yield "Nodes", word(record.get("node_list")) or "(null)"
    yield "Users", word(record.get("users")) or "(null)"
    yield "Accounts", word(record.get("accounts")) or "(null)"
    yield "Flags", word(record.get("flags"))


def licences(records: Iterable[Record]) -> str:
    """Return one line per licence."""
    return "".join(_line((name, word(each.get(name))) for name in ("LicenseName", "Total", "Used")) for each in records)


def _line(pairs: Pairs) -> str:
    return " ".join(f"{name}={value}" for name, value in pairs if value) + "\n"
