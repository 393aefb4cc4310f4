"""From the tables of a scenario to the values that a cycle reads. Times are written `1h 30m`, sizes in GiB."""

from __future__ import annotations

import json
import re

import msgspec

from cockpit.formats.quotatree import API_VERSION, KIND, read_quota_tree
from cockpit.model.accounts import ROOT, Accounts, Association, Qos, Usage, assoc_key
from cockpit.model.cluster import Cluster, Enforce, Partition, Preemption, Priority, Reservation
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask
from cockpit.model.node import NodeState
from cockpit.model.quota import QuotaTree
from cockpit.model.resilience import Elastic, Resume
from cockpit.model.spec import Dependency, NodeSpec, PriorityWord, Suspension, WorkerPool
from tests.sched.world import cards, node, spec_of

NODE_FIELDS = ("pool", "driver_version")
JOB_FIELDS = ("nodes", "pool", "driver_version", "exclusive", "reservation", "nice")
RECORD_FIELDS = ("user", "project", "account", "qos", "held_by", "direct_priority")
SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds(text: str) -> int:
    return sum(int(number) * SECONDS[unit] for number, unit in re.findall(r"(\d+)([dhms])", text))


def some(table: dict, *names: str) -> dict:
    return {name: table[name] for name in names if name in table}


def timed(table: dict) -> dict:
    """`max_wall = "1h"` as `max_wall_seconds = 3600`, in tables within it too."""
    read = {}
    for name, value in table.items():
        if isinstance(value, dict):
            read[name] = timed(value)
        elif name.endswith(("_time", "_wall", "_age")):
            read[f"{name}_seconds"] = seconds(value)
        else:
            read[name] = value
    return read


def read_node(table: dict):
    count, model, slices = re.fullmatch(r"(\d+) (\S+)(?: in (\d+) slices)?", table.get("cards", "0 none")).groups()
    return node(
        table["name"],
        cards(int(count), model, slices=int(slices or 0)),
        cpus=table["cpus"],
        memory_mib=1024 * table["memory_gib"],
        state=NodeState(table.get("state", "up")),
        **some(table, *NODE_FIELDS),
    )


def read_rules(scenario: dict) -> dict:
    """Of the snapshot: cluster, accounts, reservations and usage."""
    reservations = {table["name"]: read_reservation(table) for table in scenario.get("reservations", ())}
    used = scenario.get("usage", ())
    return {
        "cluster": Cluster(
            partitions=tuple(_struct(Partition, table) for table in scenario.get("partitions", ())),
            enforce=tuple(map(Enforce, scenario.get("enforce", ()))),
            login_pool=scenario.get("login_pool", ""),
            priority=_struct(Priority, scenario.get("priority", {})),
            preemption=_struct(Preemption, scenario.get("preemption", {})),
        ),
        "accounts": read_accounts(scenario),
        "reservations": reservations,
        "quota": read_quota(scenario["quota"]) if "quota" in scenario else None,
        "usage": {
            assoc_key(each["account"], each.get("user", "")): read_usage(each) for each in used if "qos" not in each
        },
        "qos_usage": {each["qos"]: read_usage(each) for each in used if "qos" in each},
    }


def read_quota(root: dict) -> QuotaTree:
    metadata = {"name": "quotas", "namespace": "kube-system"}
    manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"root": root}}
    return read_quota_tree("quota.json", json.dumps(manifest))


def read_accounts(scenario: dict) -> Accounts:
    accounts = Accounts()
    lines = [Association(account=ROOT)]
    lines += [_struct(Association, {"parent": ROOT, **table}) for table in scenario.get("accounts", ())]
    lines += [_struct(Association, table) for table in scenario.get("users", ())]
    qos = [_struct(Qos, table) for table in scenario.get("qos", ())]
    return Accounts(
        associations=accounts.associations | {each.key: each for each in lines},
        qos=accounts.qos | {each.name: each for each in qos},
    )


def read_reservation(table: dict) -> Reservation:
    moments = {f"{name}_at": 1000 * seconds(table[f"{name}_in"]) for name in ("start", "end")}
    return _struct(Reservation, moments | {name: table[name] for name in table if not name.endswith("_in")})


def read_usage(table: dict) -> Usage:
    minutes = table.get("minutes", {})
    return Usage(
        seconds(table.get("billed", "")),
        seconds(table.get("wall", "")),
        {name: 60.0 * amount for name, amount in minutes.items()},
    )


def read_spec(table: dict) -> NodeSpec:
    return NodeSpec(
        cpus=table.get("cpus", 1),
        memory_mib=1024 * table.get("memory_gib", 1),
        card_milli=round(1000 * table.get("cards", 0)),
        card_models=tuple(table.get("models", ())),
    )


def read_job(table: dict):
    specs = map(read_spec, table.get("specs", [table]))
    limit, pins = seconds(table.get("limit", "1h")), tuple(table.get("pins", ()))
    begin = {"begin_at": 1000 * seconds(table["begin_in"])} if "begin_in" in table else {}
    word = PriorityWord(table.get("priority", "normal"))
    begin |= read_workers(table) | read_beside(table)
    if "suspended" in table:
        begin["suspension"] = Suspension(scheduling=table["suspended"])
    return spec_of(*specs, limit=limit, pins=pins, priority=word, **begin, **some(table, *JOB_FIELDS))


def read_beside(table: dict) -> dict:
    """`beside = [{ cpus = 8 }]`: what each further replica asks for that is not like the first."""
    kinds = [read_spec(each) for each in table.get("beside", ())]
    first = WorkerPool(replicas=1, spec=read_spec(table))
    return {"worker_pools": (first, *(WorkerPool(replicas=1, spec=each) for each in kinds))} if kinds else {}


def read_workers(table: dict) -> dict:
    """`workers = "1 2 8"`: at least, wanted at its start, at most; `resumes_after = "5m"`: it goes on from a checkpoint
    that takes so long."""
    if "resumes_after" in table:
        return {"resume": Resume(max_resumes=1, grace_seconds=seconds(table["resumes_after"]))}
    if "workers" not in table:
        return {}
    least, wanted, most = map(int, table["workers"].split())
    return {"nodes": wanted, "elastic": Elastic(workers=wanted, min_workers=least, max_workers=most)}


def read_record(table: dict, ids: dict[str, JobId]) -> dict:
    """What the engine would have put beside the spec; `ids`: of the jobs before it, by name."""
    record = some(table, *RECORD_FIELDS)
    if "waited" in table:
        record["accrues_from"] = Millis(-1000 * seconds(table["waited"]))
    if "partitions" in table:
        record["partitions"] = tuple(table["partitions"])
    if after := table.get("after"):
        record["waits_for"] = tuple(Dependency(each["kind"], ids.get(each.get("job"), JobId(0))) for each in after)
    if task := table.get("task"):
        record["array"] = ArrayTask(JobId(task["array"]), task["index"], task["at_once"])
    return record


def _struct(kind: type, table: dict):
    return msgspec.convert(timed(table), kind)
