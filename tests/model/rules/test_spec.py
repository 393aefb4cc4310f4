from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.model.labels import Toleration
from cockpit.model.rules import bounds
from cockpit.model.rules.mounts import MOST_MOUNTS
from cockpit.model.rules.spec import spec_errors
from cockpit.model.spec import Algorithm, Array, DebugHold, JobKind, JobSpec, NodeSpec, Sweep, Task, Volume
from tests.hostile import UNSEEN

GOOD = JobSpec(name="held-one", command="/workspace/algorithm/t.sh", output="/data/out")


def changed(**fields: Any) -> JobSpec:
    return msgspec.structs.replace(GOOD, **fields)


def only_error(**fields: Any) -> str:
    errors = spec_errors(changed(**fields))
    assert len(errors) == 1, errors
    return errors[0]


def test_a_plain_job_has_no_errors() -> None:
    assert spec_errors(GOOD) == []


def test_everything_at_its_bounds_has_no_errors() -> None:
    spec = changed(
        nodes=bounds.NODES.high,
        specs=tuple(NodeSpec(cpus=65_536, memory_mib=1 << 30, card_milli=1_024_000) for _ in range(bounds.MOST_SPECS)),
        volumes=tuple(Volume(name=f"v{index}", path=f"/v/{index}") for index in range(MOST_MOUNTS)),
        time_limit_seconds=bounds.TIME_LIMIT_SECONDS.high,
        grace_seconds=0,
        debug_hold=DebugHold(window_seconds=1),
        env={f"N{index}": "v" for index in range(bounds.MOST_VARIABLES)},
        algorithm=Algorithm(path="/" + "/".join(["a" * 200] * 20)),
        pool="a100",
        driver_version="535.104",
    )
    assert spec_errors(spec) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, "name: is empty; give a name"),
        ({"command": ""}, "command: is empty; give one"),
        ({"command": "a\0b"}, 'command: "a\\x00b" contains a NUL character; remove it'),
        ({"command": "a" * 70_000}, "command: has 70000 bytes; use at most 65536"),
        ({"output": ""}, "output: is empty; give one"),
        ({"output": "out"}, 'output: "out" is not absolute; write it from /'),
        ({"output": "/a/../b"}, 'output: "/a/../b" contains an empty part, "." or ".."; write it without'),
        ({"output": "//a"}, 'output: "//a" contains an empty part, "." or ".."; write it without'),
        ({"algorithm": Algorithm(path="x")}, 'algorithm.path: "x" is not absolute; write it from /'),
        ({"nodes": 0}, "nodes: 0 is not between 1 and 10000"),
        ({"nodes": 1 << 62}, f"nodes: {1 << 62} is not between 1 and 10000"),
        ({"specs": ()}, "specs: has 0 entries; give 1 to 64"),
        ({"specs": (NodeSpec(), NodeSpec(cpus=0))}, "specs[1].cpus: 0 is not between 1 and 65536"),
        (
            {"specs": (NodeSpec(memory_mib=0),)},
            "specs[0].memory: 0 MiB is not between 1 MiB and 1073741824 MiB",
        ),
        (
            {"specs": (NodeSpec(card_milli=1500),)},
            "specs[0].cards: 1.5 is neither whole nor a share below 1; ask for 2",
        ),
        ({"specs": (NodeSpec(card_milli=-1),)}, "specs[0].cards: -0.001 is not between 0 and 1024"),
        ({"specs": (NodeSpec(card_milli=1_025_000),)}, "specs[0].cards: 1025 is not between 0 and 1024"),
        (
            {"specs": (NodeSpec(card_models=("A100",)),)},
            "specs[0].card_models: needs cards; add cards: 1 (or more), or remove card_models",
        ),
        ({"time_limit_seconds": 0}, "time_limit: 0 s is not between 1 s and 316224000 s"),
        ({"grace_seconds": -1}, "grace_period: -1 s is not between 0 s and 86400 s"),
        ({"debug_hold": DebugHold(window_seconds=0)}, "debug_hold.window: 0 s is not between 1 s and 31622400 s"),
        ({"pool": ""}, "pool: has 0 characters; give 1 to 253"),
        ({"project": "a/b"}, 'project: "a/b" contains "/", but a name becomes a folder; use "-" or "_" instead'),
        (
            {"node_names": ("n1", "n\x1b")},
            'node_names[1]: "n\\x1b" contains characters that cannot be seen; remove them',
        ),
        ({"node_names": ("n1", "n1")}, 'node_names: the name "n1" is there twice; each may be there once'),
        (
            {"env": {"1A": ""}},
            'env.1A: "1A" is no variable name; use letters, digits and "_", not beginning with a digit',
        ),
        ({"env": {"A": "x\0"}}, 'env.A: "x\\x00" contains a NUL character; remove it'),
        ({"env": {f"A{i}": "" for i in range(1001)}}, "env: has 1001 entries; give 0 to 1000"),
        (
            {"env": {f"A{i}": "x" * 60_000 for i in range(9)}},
            "env: has 540018 bytes in all; use at most 524288, and files for what is larger",
        ),
        (
            {"node_selector": {"": "a"}},
            "node_selector.: is no key of a label; use letters, digits and . _ / - between them, at most 253",
        ),
        (
            {"node_selector": {"disk": "x\n"}},
            "node_selector.disk: is no value of a label; use letters, digits and . _ - between them, at most 63",
        ),
        ({"node_selector": {f"k{i}": "" for i in range(65)}}, "node_selector: has 65 entries; give 0 to 64"),
        ({"tolerations": (Toleration(),) * 65}, "tolerations: has 65 entries; give 0 to 64"),
        ({"tolerations": (Toleration("", "x"),)}, "tolerations[0]: has a value without a key; give both"),
        (
            {"tolerations": (Toleration("a\x1b"),)},
            "tolerations[0]: is no key of a label; use letters, digits and . _ / - between them, at most 253",
        ),
        ({"driver_version": "535"}, "driver_version: needs a spec with cards; add cards or remove driver_version"),
    ],
)
def test_each_rule_names_its_field(fields: dict[str, Any], expected: str) -> None:
    assert only_error(**fields) == expected


@pytest.mark.req("JT-07", "JT-14", "JT-16")
def test_all_errors_are_reported_together() -> None:
    errors = spec_errors(changed(name="a/b", command="", output="x", nodes=0))
    assert [error.split(":")[0] for error in errors] == ["name", "command", "output", "nodes"]


@pytest.mark.req("JT-10", "JT-11", "JT-12")
def test_pins_exclude_pool_and_driver() -> None:
    errors = spec_errors(
        changed(node_names=("n1",), pool="p", driver_version="535", specs=(NodeSpec(card_milli=1000),))
    )
    assert [error.split(":")[0] for error in errors] == ["pool", "driver_version"]


def test_volume_names_follow_the_name_rule_and_differ() -> None:
    assert only_error(volumes=(Volume(name="..", path="/v"),)).startswith('volumes[0].name: ".." begins with "."')
    twice = only_error(volumes=(Volume(name="v", path="/a"), Volume(name="v", path="/b")))
    assert twice == 'volumes: the name "v" is there twice; each may be there once'


@pytest.mark.parametrize("milli", [0, 1, 250, 999, 1000, 8000])
def test_cards_are_whole_or_a_share_of_one(milli: int) -> None:
    assert spec_errors(changed(specs=(NodeSpec(card_milli=milli),))) == []


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
def test_errors_escape_the_text_they_quote(text: str) -> None:
    spec = changed(
        name=text,
        command=text,
        output=text,
        pool=text,
        env={text: text},
        node_names=(text,),
        volumes=(Volume(name=text, path=text),),
        specs=(NodeSpec(card_models=(text,)),),
    )
    errors = spec_errors(spec)
    assert len(errors) >= 6
    assert all(error.isprintable() for error in errors)


def test_hostile_sizes_are_checked_quickly() -> None:
    spec = changed(
        specs=(NodeSpec(cpus=0),) * 100_000,
        node_names=("",) * 100_000,
        volumes=(Volume(name="", path=""),) * 100_000,
    )
    assert len(spec_errors(spec)) < 3 * bounds.MOST_PINS


@pytest.mark.req("JT-25")
@pytest.mark.parametrize(("deadline", "early"), [(61_000, False), (60_999, True), (1000, True), (999, True)])
def test_a_deadline_comes_after_the_beginning_and_the_time_limit(deadline: int, early: bool) -> None:
    errors = spec_errors(changed(begin_at=1000, time_limit_seconds=60, deadline_at=deadline))
    assert any(error.startswith("deadline: comes before") for error in errors) is early
    assert not any("deadline" in each for each in spec_errors(changed(time_limit_seconds=60, deadline_at=deadline)))


BOUNDARIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"array": Array((4_000_000,))}, {"array": Array((4_000_001,))}),
    ({"array": Array((1, 2), 1)}, {"array": Array((1, 2), -1)}),
    (
        {"kind": JobKind.BATCH, "command": "", "tasks": (Task(command="x"),) * 1000},
        {"kind": JobKind.BATCH, "command": "", "tasks": (Task(command="x"),) * 1001},
    ),
    ({"sweep": Sweep(parameters={"lr": ("1",)})}, {"sweep": Sweep(parameters={})}),
    (
        {"sweep": Sweep(parameters={"lr": ("1",)}, seed=2**32 - 1)},
        {"sweep": Sweep(parameters={"lr": ("1",)}, seed=2**32)},
    ),
    ({"command": "prüfe"}, {"command": "half \ud800"}),
]


@pytest.mark.parametrize(("most", "beyond"), BOUNDARIES)
@pytest.mark.req("JT-03")
def test_each_bound_permits_its_last_value_and_no_more(most: dict[str, Any], beyond: dict[str, Any]) -> None:
    (path,) = {*most} - {"kind", "command"} or {"command"}
    assert [error for error in spec_errors(changed(**most)) if error.startswith(path)] == []
    assert [error for error in spec_errors(changed(**beyond)) if error.startswith(path)]


@pytest.mark.req("JT-03")
def test_an_error_of_an_array_names_the_index_that_is_out_of_bounds() -> None:
    assert "4000001" in only_error(array=Array((1, 4_000_001)))


@pytest.mark.req("LA-60")
def test_a_parameter_server_has_one_cpu_and_a_gibibyte() -> None:
    assert changed(parameter_servers=2).helpers == (NodeSpec(cpus=1, memory_mib=1024),) * 2
