"""What is written in another form and read again is the same job, or the difference is told."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.formats.foreign.draft import runnable
from cockpit.formats.foreign.exchange import Form, taken_over, written
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Access, JobSpec, Mode, NodeSpec, WorkerPool

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
LABELS = st.from_regex(r"[a-z]{1,9}", fullmatch=True)
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
COMMANDS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=4).map(lambda words: runnable(" ".join(["python3", *words]))),
    st.lists(WORDS, min_size=2, max_size=3).map(lambda words: runnable("echo a\n" + " ".join(words))),
)
ENVIRONMENTS = st.dictionaries(st.from_regex(r"[A-Z]{3,8}", fullmatch=True), NAMES, max_size=3)
SPECS = st.builds(
    NodeSpec,
    cpus=st.integers(1, 128),
    memory_mib=st.integers(1, 4096).map(lambda gib: gib * 1024),
    card_milli=st.integers(1, 16).map(lambda cards: cards * 1000),
)


def read(source: str, text: str) -> list[JobSpec]:
    return read_jobs(f"{source}.json", text, "/", defaults=Defaults())


def jobs(**fields: Any) -> st.SearchStrategy[JobSpec]:
    return st.builds(
        JobSpec,
        name=NAMES,
        command=COMMANDS,
        env=ENVIRONMENTS,
        nodes=st.just(1),
        specs=SPECS.map(lambda spec: (spec,)),
        time_limit_seconds=st.integers(1, 10**6),
        **fields,
    ).map(lambda spec: replace(spec, output=f"/{spec.name}"))


def there_and_back(spec: JobSpec, form: Form) -> tuple[str, ...]:
    return written(spec, form, read).lost


@pytest.mark.req("LA-70")
@settings(max_examples=25)
@given(
    jobs(
        output=st.just("/x"),
        partitions=st.lists(NAMES, max_size=2, unique=True).map(tuple),
        account=st.none() | NAMES,
        exclusive=st.booleans(),
        hold=st.booleans(),
        nice=st.integers(0, 99),
    )
)
def test_slurm(spec: JobSpec) -> None:
    if spec.nodes > 1:
        spec = replace(spec, mode=Mode.SLURM)
    assert there_and_back(spec, Form.SBATCH) == ()


@pytest.mark.req("LA-70")
@settings(max_examples=25)
@given(
    jobs(
        output=st.just("/x"),
        image=NAMES,
        mode=st.sampled_from([Mode.PYTORCH, Mode.HOROVOD, Mode.TENSORFLOW]),
        node_selector=st.dictionaries(LABELS, LABELS, max_size=1),
    )
)
def test_arena(spec: JobSpec) -> None:
    plain = replace(spec, time_limit_seconds=JobSpec(name="x", command="x", output="/x").time_limit_seconds)
    assert there_and_back(plain, Form.ARENA) == ()
    grows = replace(plain, mode=Mode.HOROVOD, elastic=Elastic(workers=plain.nodes, max_workers=99))
    assert there_and_back(grows, Form.ARENA) == ()


@pytest.mark.req("LA-70", "KU-10")
@settings(max_examples=25)
@given(jobs(output=st.just("/x"), image=NAMES, mode=st.just(Mode.HOROVOD)), st.integers(1, 9))
def test_elastic_training(spec: JobSpec, least: int) -> None:
    elastic = Elastic(workers=9, min_workers=least, max_workers=99, spot=least > 5)
    assert there_and_back(replace(spec, nodes=9, elastic=elastic), Form.TRAININGJOB) == ()


@pytest.mark.req("LA-70")
@settings(max_examples=25)
@given(jobs(output=st.just("/x"), image=NAMES, mode=st.just(Mode.PYTORCH), hold=st.booleans()))
def test_the_training_operator(spec: JobSpec) -> None:
    assert there_and_back(spec, Form.PYTORCHJOB) == ()


MANIFESTS = {
    Form.PYTORCHJOB: Mode.PYTORCH,
    Form.TFJOB: Mode.TENSORFLOW,
    Form.MPIJOB: Mode.HOROVOD,
    Form.TRAINJOB: Mode.PYTORCH,
    Form.JOB: None,
    Form.VOLCANOJOB: Mode.PYTORCH,
}


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("form", MANIFESTS)
@settings(max_examples=25)
@given(data=st.data())
def test_manifests(form: Form, data: st.DataObject) -> None:
    spec = data.draw(
        jobs(
            output=st.just("/x"),
            image=NAMES,
            mode=st.just(MANIFESTS[form]),
            labels=st.dictionaries(LABELS, LABELS, max_size=2),
            project=st.none() | NAMES.filter(lambda name: name != "default"),
        )
    )
    nodes = 1 if form is Form.JOB else data.draw(st.integers(1, 5))
    mode = spec.mode if nodes > 1 or form in {Form.PYTORCHJOB, Form.TFJOB, Form.MPIJOB, Form.TRAINJOB} else None
    assert there_and_back(replace(spec, nodes=nodes, mode=mode), form) == ()


def pool(spec: NodeSpec, replicas: int) -> WorkerPool:
    return WorkerPool(replicas=replicas, spec=replace(spec, card_models=("NVIDIA_TESLA_T4",)), image="train")


@pytest.mark.req("LA-70", "LA-60")
@settings(max_examples=25)
@given(jobs(output=st.just("/x")), SPECS, st.integers(0, 5))
def test_vertex(spec: JobSpec, other: NodeSpec, workers: int) -> None:
    pools = (pool(spec.specs[0], 1), pool(other, workers) if workers else WorkerPool(), pool(other, 2))
    job = replace(spec, nodes=1, mode=Mode.WORKER_POOLS, worker_pools=pools, specs=(pools[0].spec,))
    assert there_and_back(job, Form.CUSTOMJOB) == ()
    default = JobSpec(name="x", command="x", output="/x").time_limit_seconds
    plain = replace(job, env={}, time_limit_seconds=default, command="python3 t.py")
    assert there_and_back(plain, Form.GCLOUD) == ()


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("form", [form for form in Form if form not in {Form.YAML, Form.JSON}])
def test_fields_that_a_format_cannot_express_are_reported(form: Form) -> None:
    """Whatever it is: what is written is read again and compared."""
    spec = JobSpec(
        name="x", command="a $COCKPIT_REPLICA", output="/x", terminal=True, access=Access.RW, project="p", qos="high"
    )
    assert {"terminal", "access", "qos"} <= {*there_and_back(spec, form)} or form is Form.SBATCH
    assert {"terminal", "access"} <= {*there_and_back(spec, form)}


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    "options",
    [
        "-N 2 --ntasks-per-node=4 -c 32 --gpus-per-task=1",
        "-n 8 -c 2",
        "-N 3 -n 6",
        "--exclusive -c 4 --mem=3G",
        "-n 4 -c 2 --mem-per-cpu=2G",
        "--gpus-per-node=2 -c 3 --mem-per-gpu=8G",
    ],
)
def test_tasks_are_read_back_as_the_same_nodes(options: str) -> None:
    found = taken_over("x", f"#!/bin/bash\n#SBATCH -J x -D /x {options}\npython3 t.py\n")
    assert found is not None
    (spec,) = read("x", found.text)
    assert there_and_back(spec, Form.SBATCH) == ()


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("output", ["a\u2028b", "a\x85b", "a\x0bb.out", "a\rb"])
def test_line_ends_that_are_none_for_slurm_stay_in_the_names_of_files(output: str) -> None:
    (spec,) = read("x", _script("#!/bin/bash", output))
    assert spec.script is not None
    assert spec.script.output == output
    assert there_and_back(spec, Form.SBATCH) == ()


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    "first", ["#!/bin/bash -c 'a;b'", "#!/usr/bin/env -S python3 -X dev=$(id)", "#!/bin/sh -e # stop"]
)
def test_the_words_of_an_interpreter_are_text(first: str) -> None:
    """Nothing but the kernel reads that line, so that none of it is an error of the job's command."""
    (spec,) = read("x", _script(first))
    assert shlex.split(spec.command)[-2:] == ["-c", "hostname"]


def _script(first: str, output: str = "") -> str:
    converted = taken_over("x", f"{first}\n#SBATCH -J x -D /x\nhostname\n")
    assert converted is not None
    values = json.loads(converted.text)
    values["script"] |= {"output": output} if output else {}
    return json.dumps(values)
