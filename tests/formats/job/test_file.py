from __future__ import annotations

import json
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.labels import Toleration
from cockpit.model.mounts import Dataset
from cockpit.model.spec import Algorithm, DebugHold, Failover, HoldCards, HomeAccess, JobSpec, Mode, NodeSpec, Volume
from tests.hostile import HOSTILE, UNSEEN

DEFAULTS = Defaults(home_folder="/home/alice")
EXAMPLE = Path(__file__).with_name("held-one.yaml")
LEAST = {"name": "a", "command": "x", "output": "out"}


def read(text: str, source: str = "job.yaml", folder: str = "/work") -> list[JobSpec]:
    return read_jobs(source, text, folder, defaults=DEFAULTS)


def errors_of(text: str, source: str = "job.yaml") -> tuple[str, ...]:
    with pytest.raises(SpecErrors) as caught:
        read(text, source)
    return caught.value.errors


def one(**fields: Any) -> JobSpec:
    (spec,) = read(json.dumps(LEAST | fields), "job.json")
    return spec


def error_of(**fields: Any) -> str:
    (error,) = errors_of(json.dumps(LEAST | fields), "job.json")
    return error.removeprefix("job.json: ")


@pytest.mark.req("JT-07", "JT-20", "JT-21")
def test_the_example_is_read_to_its_spec() -> None:
    assert read(EXAMPLE.read_text(), str(EXAMPLE), "/home/alice/jobs") == [
        JobSpec(
            name="held-one",
            algorithm=Algorithm(path="/home/alice/jobs/algo"),
            output="/home/alice/jobs/out",
            command="/workspace/algorithm/t.sh",
            nodes=1,
            specs=(NodeSpec(cpus=1, memory_mib=512, card_milli=0),),
            terminal=True,
            time_limit_seconds=600,
        )
    ]


def test_name_command_and_output_are_enough() -> None:
    assert one() == JobSpec(name="a", command="x", output="/work/out", limit_by_default=True)
    assert not one(time_limit="1d").limit_by_default


@pytest.mark.req("JT-14", "JT-20", "JT-30")
def test_every_field_is_in_the_spec() -> None:
    fields: dict[str, Any] = {
        "algorithm": {"path": "~/algo", "read_only": True},
        "volumes": ["/v/one", {"path": "two", "name": "second"}],
        "nodes": 2,
        "mode": "horovod",
        "specs": [{"cpus": 4, "memory": "1.5G", "cards": 2, "card_models": ["A100", "H100"]}, {"cards": 0.25}],
        "pool": "p",
        "driver_version": "535",
        "exclusive": True,
        "terminal": True,
        "debug_hold": {"cards": "keep", "window": "2h"},
        "time_limit": "2-12:00:00",
        "grace_period": 5,
        "hold": True,
        "home": "rw",
        "image": "dir:../root",
        "staging": True,
        "datasets": [{"path": "/d/cats", "read_only": True}],
        "env": {"A": "b", "N": 4},
        "project": "nlp",
    }
    assert one(**fields) == JobSpec(
        name="a",
        command="x",
        output="/work/out",
        algorithm=Algorithm(path="/home/alice/algo", read_only=True),
        volumes=(Volume(name="one", path="/v/one"), Volume(name="second", path="/work/two")),
        nodes=2,
        mode=Mode.HOROVOD,
        specs=(
            NodeSpec(cpus=4, memory_mib=1536, card_milli=2000, card_models=("A100", "H100")),
            NodeSpec(card_milli=250),
        ),
        pool="p",
        driver_version="535",
        exclusive=True,
        terminal=True,
        debug_hold=DebugHold(cards=HoldCards.KEEP, window_seconds=7200),
        time_limit_seconds=216_000,
        grace_seconds=5,
        hold=True,
        home=HomeAccess.RW,
        image="dir:/root",
        staging=True,
        datasets=(Dataset(name="cats", path="/d/cats", read_only=True),),
        env={"A": "b", "N": "4"},
        project="nlp",
    )
    assert one(node_names=["n1", "n2"]).node_names == ("n1", "n2")


@pytest.mark.req("JT-25")
def test_labels_and_tolerations_are_read_as_tables_and_as_the_words_of_kubectl() -> None:
    assert one(node_selector={"disk": "ssd", "rack": 4}).node_selector == {"disk": "ssd", "rack": "4"}
    assert one(node_selector="disk=ssd, rack=4").node_selector == {"disk": "ssd", "rack": "4"}
    tolerated = one(tolerations=["spot", "gpu=yes:NoSchedule", "old=", "*"]).tolerations
    assert tolerated == (Toleration("spot"), Toleration("gpu", "yes"), Toleration("old", ""), Toleration())
    assert [each.text for each in tolerated] == ["spot", "gpu=yes", "old=", "*"]
    for wrong in ("ssd", ["disk=ssd"], {"a b": "c"}, {"disk": "s d"}):
        (error,) = errors_of(json.dumps(LEAST | {"node_selector": wrong}))
        assert error.startswith("job.yaml: node_selector")
    (error,) = errors_of(json.dumps(LEAST | {"tolerations": ["a=b=c"]}))
    assert error.startswith('job.yaml: tolerations[0]: "a=b=c" is no value of a label')


@pytest.mark.req("FL-05", "FL-08")
def test_division_and_binding_toleration_of_a_job_are_read() -> None:
    found = one(divide_over_clusters=True, failover={"toleration_seconds": 5})
    assert (found.divide_over_clusters, found.failover) == (True, Failover(toleration_seconds=5))
    assert (one().divide_over_clusters, one().failover) == (False, Failover(toleration_seconds=30))


def test_short_forms() -> None:
    assert one(algorithm="algo").algorithm == Algorithm(path="/work/algo")
    assert one(specs=[{"cards": 1, "card_model": "A100"}]).specs[0].card_models == ("A100",)


def test_defaults_are_the_administrators() -> None:
    defaults = Defaults(time_limit_seconds=7, grace_seconds=8)
    (spec,) = read_jobs("job.json", json.dumps(LEAST), "/", defaults=defaults)
    assert (spec.time_limit_seconds, spec.grace_seconds) == (7, 8)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("out", "/work/out"),
        ("./a/../b", "/work/b"),
        ("../../..", "/"),
        ("/a//b/", "/a/b"),
        ("//a", "/a"),
        ("~/x", "/home/alice/x"),
        ("~", "/home/alice"),
        ("./~", "/work/~"),
        ("a\x1bb", "/work/a\x1bb"),
    ],
)
def test_relative_paths_start_at_the_folder_of_the_file(path: str, expected: str) -> None:
    assert one(output=path).output == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nmae": "b"}, "nmae: is no field here; did you mean name?"),
        ({"specs": [{"cpu": 1}]}, "specs[0].cpu: is no field here; did you mean cpus?"),
        (
            {"failover": {"toleration_seconds": 86401}},
            "failover.toleration_seconds: 86401 s is not between 0 s and 86400 s",
        ),
        ({"debug_hold": {"zzz": 1}}, "debug_hold.zzz: is no field here; known are cards, window, allocation"),
        ({"a\x1b": 1}, "a\\x1b: is no field here; known are name, command"),
        ({"name": 123}, 'name: is the number 123, not text; quote it: "123"'),
        ({"name": True}, "name: is true (so are yes, no, on and off); to mean the word, quote it"),
        ({"name": None}, "name: is empty; write text"),
        ({"name": ["a"]}, "name: is a list; write text"),
        ({"nodes": "2"}, 'nodes: is the text "2"; write a whole number from 1 on, without quotes'),
        ({"nodes": True}, "nodes: is true; write a whole number from 1 on, without quotes"),
        ({"nodes": 1.5}, "nodes: is the number 1.5; write a whole number from 1 on, without quotes"),
        ({"nodes": 0}, "nodes: 0 is not between 1 and 10000"),
        ({"hold": "yes"}, 'hold: is the text "yes"; write true or false, without quotes'),
        ({"image": ""}, "image: is empty; give one"),
        ({"image": "dir:"}, "image: is empty; give one"),
        ({"image": "-v"}, 'image: "-v" begins with "-"; write host, dir:PATH, tar:PATH or the name of an image'),
        ({"home": "rx"}, 'home: is the text "rx"; write none or ro or rw'),
        ({"partitions": "gpu"}, 'partitions: is the text "gpu"; write a list: ["gpu"]'),
        ({"partitions": 3}, "partitions: is the number 3; write a list: [3]"),
        ({"specs": {}}, "specs: is a table; write a list: [a table]"),
        ({"specs": []}, "specs: has 0 entries; give 1 to 64"),
        ({"specs": [3]}, "specs[0]: is the number 3; write fields: cpus, memory, cards, card_models …"),
        (
            {"specs": [{}, {"memory": "12X"}]},
            'specs[1].memory: "12X" is no size; write 512M, 2G, 1.5G or a number of MiB',
        ),
        ({"specs": [{"memory": None}]}, "specs[0].memory: is empty; write 512M or 2G"),
        ({"specs": [{"cards": 0.0001}]}, "specs[0].cards: 0.0001 is finer than a thousandth of a card; write 0.001"),
        ({"specs": [{"cards": 10**4000}]}, "specs[0].cards: 1000"),
        ({"nodes": 10**4000}, "nodes: 1000"),
        ({"specs": [{"cards": 1e308}]}, "specs[0].cards: 1e+308 is not between 0 and 1024"),
        ({"specs": [{"memory": " " * 10**6}]}, 'specs[0].memory: "  '),
        ({"specs": [{"cards": 1e300}]}, "specs[0].cards: 1e+300 is not between 0 and 1024"),
        ({"specs": [{"cards": 1.5}]}, "specs[0].cards: 1.5 is neither whole nor a share below 1; ask for 2"),
        (
            {"specs": [{"cards": 1, "card_model": "A", "card_models": ["B"]}]},
            "specs[0].card_models: says again what another field says; keep one of them",
        ),
        ({"time_limit": []}, "time_limit: is a list; write 10m"),
        ({"time_limit": 0}, "time_limit: 0 s is not between 1 s and 316224000 s"),
        ({"output": 3}, "output: is the number 3; write the path of a folder"),
        ({"output": ""}, "output: is empty; write the path of a folder"),
        (
            {"output": "~bob/x"},
            'output: "~bob/x" begins with a home that is not known here; write the whole path, or ./~',
        ),
        ({"output": "a\0"}, 'output: "/work/a\\x00" contains a NUL character; remove it'),
        ({"algorithm": {}}, "algorithm: says neither path nor name; write one of them"),
        ({"algorithm": {"path": "/a", "name": "a"}}, "algorithm.name: cannot be used with path"),
        ({"datasets": [{"name": "a", "version": "v1"}]}, "datasets[0].version: is none of a private one's"),
        ({"models": [{"name": "a", "source": "favorite"}]}, "models[0].version: is missing"),
        ({"models": ["a", {"name": "a"}]}, 'models: the name "private/a" is there twice'),
        ({"specs": [{"name": "a", "cpus": 2}]}, "specs[0].name: cannot be combined"),
        ({"volumes": [{"path": "/"}]}, "volumes[0].name: is empty; give a name"),
        ({"volumes": ["/a/v", "/b/v"]}, 'volumes: the name "v" is there twice; each may be there once'),
        ({"env": []}, "env: is a list; write NAME: value pairs"),
        ({"env": {"A": 1.5}}, 'env.A: is the number 1.5, not text; quote it: "1.5"'),
        ({"node_names": ["n"], "pool": "p"}, "pool: cannot be used with node_names"),
    ],
)
def test_each_wrong_field_has_one_sentence_with_its_path(fields: dict[str, Any], expected: str) -> None:
    error = error_of(**fields)
    assert error.startswith(expected)
    assert error.isprintable()


@pytest.mark.req("JT-16", "LA-01")
def test_a_command_that_needs_a_shell_is_refused_on_reading() -> None:
    assert error_of(command="A=1 x | y").endswith('wrap it: bash -c "A=1 x | y"')


@pytest.mark.req("JT-07")
def test_missing_required_fields_are_reported() -> None:
    assert [error.split(":")[1] for error in errors_of("{}")] == [" name", " command", " output"]


@pytest.mark.parametrize("word", ["no", "123", "2024-01-01", "0x10", "1e3", "on"])
def test_ambiguous_yaml_values_are_reported_and_quoting_helps(word: str) -> None:
    (error,) = errors_of(f"{{name: {word}, command: x, output: o}}")
    assert error.startswith("job.yaml: name: ")
    assert "quote it" in error
    assert read(f"{{name: '{word}', command: x, output: o}}")[0].name == word


def test_unambiguous_yaml_words_are_accepted() -> None:
    text = "{name: a, command: x, output: o, terminal: yes, home: none, time_limit: 4:00:00, env: {N: 4}}"
    (spec,) = read(text)
    assert (spec.terminal, spec.home, spec.time_limit_seconds, spec.env) == (True, "none", 14_400, {"N": "4"})


def test_all_errors_of_all_jobs_are_reported_together_with_their_lines() -> None:
    lines = [
        json.dumps(LEAST),
        json.dumps(LEAST | {"name": "b", "nodes": 0, "nmae": 1}),
        "",
        "{not json",
        json.dumps(LEAST | {"name": "c", "specs": [{"memory": "x"}]}),
        json.dumps(LEAST),
        '{"name": "d", "name": "e"}',
    ]
    assert [error.split(";")[0] for error in errors_of("\r\n".join(lines), "jobs.jsonl")] == [
        "jobs.jsonl:4: is not JSON: Expecting property name enclosed in double quotes, line 1, column 2",
        'jobs.jsonl:7: "name" is there twice in one table',
        "jobs.jsonl:2: nmae: is no field here",
        "jobs.jsonl:2: nodes: 0 is not between 1 and 10000",
        'jobs.jsonl:5: specs[0].memory: "x" is no size',
        'jobs.jsonl:6: name: "a" is taken by the job at line 1',
    ]


def test_names_are_unique_per_project() -> None:
    jobs = [LEAST, LEAST | {"project": "p"}, LEAST | {"project": "q"}]
    assert len(read(json.dumps(jobs), "jobs.json")) == 3
    assert errors_of(json.dumps([*jobs, jobs[1]]), "jobs.json") == (
        'jobs.json[3]: name: "a" is taken by the job at [1]; give another',
    )


def test_one_error_submits_nothing_but_a_stand_in_name_is_no_name() -> None:
    errors = errors_of(json.dumps([LEAST | {"name": 1}, LEAST | {"name": "x"}, LEAST | {"name": None}]), "jobs.json")
    assert [error.split(": ")[0:2] for error in errors] == [["jobs.json[0]", "name"], ["jobs.json[2]", "name"]]


TWO = [LEAST, LEAST | {"name": "b", "nodes": 2, "mode": "pytorch"}]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("jobs.json", json.dumps(TWO, indent=2)),
        ("jobs.jsonl", "\n".join(map(json.dumps, TWO))),
        ("jobs.ndjson", "\n\n".join(map(json.dumps, TWO)) + "\n"),
        ("jobs.yaml", yaml.safe_dump(TWO)),
        ("jobs.yml", yaml.safe_dump_all(TWO)),
        ("jobs.YAML", "---\n" + yaml.safe_dump(TWO[0]) + "---\n---\n" + yaml.safe_dump([TWO[1]])),
        ("-", json.dumps(TWO, indent=2)),
        ("-", "\n".join(map(json.dumps, TWO))),
        ("-", yaml.safe_dump_all(TWO)),
        ("-", "[{name: a, command: x, output: out}, {name: b, command: x, output: out, nodes: 2, mode: pytorch}]"),
        ("jobs", "\ufeff" + json.dumps(TWO)),
    ],
)
def test_every_format_reads_the_same(source: str, text: str) -> None:
    assert read(text, source) == read(json.dumps(TWO), "jobs.json")


@pytest.mark.parametrize(
    ("source", "text", "part"),
    [
        ("job.yaml", "", "holds no job"),
        ("job.jsonl", "\n\n", "holds no job"),
        ("job.json", "", "is not JSON"),
        ("job.json", "{}\n{}", "one job a line needs a file named .jsonl"),
        ("job.json", "[" * 100_000, "nests deeper"),
        ("job.json", '{"nodes": ' + "9" * 5000 + "}", "thousands of digits"),
        ("job.json", '{"nodes": NaN}', "NaN is no JSON"),
        ("job.json", "3", "is the number 3; write fields"),
        ("job.yaml", "just text", 'is the text "just text"; write fields'),
        ("job.yaml", "name: \ud800", "is not UTF-8"),
        ("a\x1b.json", "x", "a\\x1b.json: is not JSON"),
    ],
)
def test_a_file_that_is_no_job_file_is_reported(source: str, text: str, part: str) -> None:
    (error, *_) = errors_of(text, source)
    assert part in error
    assert error.isprintable()


@pytest.mark.req("TR-05", "JT-01")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_in_every_field_is_reported_escaped(text: str) -> None:
    job = dict.fromkeys(("name", "command", "output", "algorithm", "pool", "home", "time_limit", "project"), text)
    job |= {text: text, "env": {text: text}, "node_names": [text], "volumes": [text], "specs": [{"memory": text}]}
    for error in errors_of(json.dumps([job]), "jobs.json"):
        assert error.isprintable()
        assert len(error) < 1000


@pytest.mark.req("JT-01", "TR-05")
@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
def test_hostile_names_are_refused_with_the_field(text: str) -> None:
    assert error_of(name=text).startswith("name: ")


WORDS = st.text(alphabet="abno1.- é训[]{}'\"\\", min_size=1, max_size=8)
JOBS = st.fixed_dictionaries(
    {"name": WORDS, "command": WORDS, "output": WORDS},
    optional={
        "nodes": st.integers(-1, 5) | WORDS,
        "specs": st.lists(
            st.dictionaries(
                st.sampled_from(["cpus", "memory", "cards", "cpu"]), st.integers(0, 9) | WORDS | st.floats(0, 2)
            ),
            max_size=3,
        ),
        "terminal": st.booleans() | WORDS,
        "time_limit": st.integers(0, 100) | WORDS,
        "env": st.dictionaries(WORDS, WORDS | st.integers(0, 9), max_size=3),
        "pool": st.none() | WORDS,
    },
)


def outcome(text: str, source: str) -> object:
    try:
        return read(text, source)
    except SpecErrors as error:
        return error.errors


@settings(max_examples=150, deadline=None)
@given(st.lists(JOBS, min_size=1, max_size=1))
def test_yaml_and_json_are_read_alike(jobs: list[dict[str, Any]]) -> None:
    as_json = outcome(json.dumps(jobs[0]), "jobs")
    assert outcome(yaml.safe_dump(jobs[0], sort_keys=False), "jobs") == as_json


def test_the_order_of_fields_does_not_matter() -> None:
    items = list((LEAST | {"nodes": 2, "mode": "pytorch"}).items())
    assert len({repr(read(json.dumps(dict(order)), "j.json")) for order in permutations(items)}) == 1


def test_json_is_read_without_loading_yaml() -> None:
    script = (
        "import sys; from cockpit.formats.job.file import Defaults, read_jobs\n"
        'read_jobs(\'-\', \'{"name": "a", "command": "x", "output": "/o"}\', \'/\', defaults=Defaults())\n'
        "print([name for name in ('yaml', 'asyncio', 'textual') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_ten_thousand_jobs_are_read_quickly() -> None:
    job = {
        "command": "python3 train.py --lr 0.1",
        "output": "./out",
        "specs": [{"cpus": 4, "memory": "16G", "cards": 1}],
    }
    text = "\n".join(json.dumps({"name": f"job-{number}", "time_limit": "4h", **job}) for number in range(10_000))
    begin = process_time()
    assert len(read(text, "jobs.jsonl")) == 10_000
    assert process_time() - begin < 3, "usually a third of a second; ten times that is a defect on any machine"
