from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.specfile import spec_as_table, spec_as_yaml
from cockpit.formats.job.texts import texts_of, values_of
from cockpit.launch.checks import submission_errors
from cockpit.model.labels import KEY, VALUE, Toleration
from cockpit.model.mounts import Algorithm, AlgorithmSource, Dataset, DatasetSource, Model, ModelSource, Volume
from cockpit.model.rules.bounds import ARRAY_INDEX, MOMENT, MOST_TASKS, NICE
from cockpit.model.spec import (
    Array,
    DebugHold,
    Dependency,
    DependencyKind,
    HoldCards,
    HomeAccess,
    JobSpec,
    Mode,
    NodeSpec,
    PriorityWord,
)
from cockpit.model.text import is_visible
from tests.hostile import HOSTILE

OTHER_DEFAULTS = Defaults(time_limit_seconds=1, grace_seconds=2, home_folder="/elsewhere")


def read_back(text: str, source: str = "job.yaml") -> JobSpec:
    (spec,) = read_jobs(source, text, "/another/folder", defaults=OTHER_DEFAULTS)
    return spec


def test_only_what_differs_is_written() -> None:
    spec = JobSpec(name="a", command="x", output="/out", specs=(NodeSpec(memory_mib=2048, card_milli=1500),))
    assert spec_as_table(spec) == {
        "name": "a",
        "command": "x",
        "output": "/out",
        "specs": [{"memory": "2G", "cards": 1.5}],
        "time_limit": "1d",
        "grace_period": "30s",
    }


NAMES = st.text(min_size=1, max_size=20)
PATHS = st.lists(st.text(alphabet="ab ~.é\x1b\n#:", min_size=1, max_size=5), max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)
SPECS = st.builds(
    JobSpec,
    name=NAMES | st.sampled_from(["null", "1e3", "on", "2024-01-01", "0o7", "1_0", "=", "<<"]),
    command=st.text(min_size=1, max_size=30),
    output=PATHS,
    algorithm=st.none()
    | st.builds(Algorithm, path=PATHS, read_only=st.booleans())
    | st.builds(Algorithm, name=NAMES, source=st.sampled_from(AlgorithmSource)),
    datasets=st.lists(
        st.builds(Dataset, name=NAMES, path=st.just("") | PATHS, read_only=st.booleans())
        | st.builds(
            Dataset,
            name=NAMES,
            source=st.sampled_from([DatasetSource.FAVORITE, DatasetSource.ANNOTATION]),
            version=NAMES,
        ),
        max_size=2,
    ).map(tuple),
    models=st.lists(
        st.builds(Model, name=NAMES, source=st.just(ModelSource.PRETRAINED))
        | st.builds(Model, name=NAMES, source=st.just(ModelSource.FAVORITE), version=NAMES),
        max_size=2,
    ).map(tuple),
    volumes=st.lists(st.builds(Volume, name=NAMES | st.sampled_from(["x", "stand-in"]), path=PATHS), max_size=2).map(
        tuple
    ),
    nodes=st.integers(1, 10_000),
    mode=st.sampled_from([Mode.HOROVOD, Mode.PYTORCH, Mode.DEEPSPEED, Mode.SLURM]),
    specs=st.lists(
        st.builds(
            NodeSpec,
            cpus=st.integers(1, 64),
            memory_mib=st.integers(1, 1 << 30),
            card_milli=st.integers(1, 999) | st.sampled_from([1000, 8000]),
            card_models=st.lists(NAMES, max_size=2).map(tuple),
        )
        | st.builds(NodeSpec, name=NAMES),
        min_size=1,
        max_size=3,
    ).map(tuple),
    pool=st.none() | NAMES,
    driver_version=st.none() | NAMES,
    node_selector=st.dictionaries(st.from_regex(KEY, fullmatch=True), st.from_regex(VALUE, fullmatch=True), max_size=2),
    tolerations=st.lists(
        st.just(Toleration())
        | st.builds(Toleration, st.from_regex(KEY, fullmatch=True), st.none() | st.from_regex(VALUE, fullmatch=True)),
        max_size=2,
    ).map(tuple),
    exclusive=st.booleans(),
    terminal=st.booleans(),
    debug_hold=st.builds(DebugHold, cards=st.sampled_from(HoldCards), window_seconds=st.none() | st.integers(1, 10**6)),
    time_limit_seconds=st.integers(1, 10**6),
    grace_seconds=st.integers(0, 86_400),
    hold=st.booleans(),
    home=st.sampled_from(HomeAccess),
    image=st.sampled_from(["host", "dir:/a b", "tar:/x.tar", "torch:2.1", "localhost/a@b"]),
    staging=st.booleans(),
    env=st.dictionaries(st.from_regex(r"\A[A-Z_]{1,5}\Z"), st.text(max_size=20), max_size=3),
    project=st.none() | NAMES,
    account=st.none() | NAMES,
    partitions=st.lists(NAMES, max_size=3, unique=True).map(tuple),
    qos=st.none() | NAMES,
    priority=st.sampled_from(PriorityWord),
    nice=st.integers(NICE.low, NICE.high),
    begin_at=st.none() | st.integers(0, MOMENT.high // 2),
    deadline_at=st.none() | st.integers(MOMENT.high // 2, MOMENT.high),
    dependencies=st.lists(
        st.builds(Dependency, st.sampled_from(list(DependencyKind)[:-1]), st.integers(1, 10**9))
        | st.just(Dependency(DependencyKind.SINGLETON)),
        max_size=4,
    ).map(tuple),
    array=st.none()
    | st.builds(
        Array,
        st.sets(st.integers(0, 60) | st.integers(0, ARRAY_INDEX.high), min_size=1, max_size=40).map(
            lambda indices: tuple(sorted(indices))
        ),
        st.integers(0, MOST_TASKS),
    ),
    reservation=st.just("") | NAMES,
)


@settings(max_examples=300, deadline=None)
@given(SPECS)
def test_every_legal_spec_reads_back_equal_from_yaml_and_from_json(spec: JobSpec) -> None:
    if submission_errors(spec):
        return
    assert read_back(spec_as_yaml(spec)) == spec
    assert read_back(json.dumps(spec_as_table(spec)), "job.json") == spec


@pytest.mark.req("UI-08")
@pytest.mark.parametrize("value", ["\U00018cd6", "\\\U00018cd6", "\U00018cd6\U000e0001", "\\ud823\\udcd6"])
def test_invisible_characters_can_be_in_a_form(value: str) -> None:
    spec = JobSpec(name="a", command="x", output="/out", env={"A": value})
    read = read_back(json.dumps(values_of(texts_of(spec_as_table(spec)))), "job.json")
    assert msgspec.structs.replace(read, limit_by_default=False) == spec


@pytest.mark.req("UI-08")
@settings(max_examples=200, deadline=None)
@given(SPECS)
def test_every_legal_spec_can_be_in_a_form(spec: JobSpec) -> None:
    if submission_errors(spec):
        return
    texts = texts_of(spec_as_table(spec))
    assert all(is_visible(text) for text in texts.values())
    assert read_back(json.dumps(values_of(texts)), "job.json") == spec


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_written_as_escapes_and_reads_back(text: str) -> None:
    spec = JobSpec(name="a", command=f"x {json.dumps(text)[1:-1]}", output="/out", env={"A": text})
    if submission_errors(spec):
        return
    written = spec_as_yaml(spec)
    assert read_back(written) == spec
    assert not any(char in written for char in "\x1b\x07\x9b\x7f\r\0\u202e\u2028")


def test_scripts_of_several_lines_stay_readable() -> None:
    spec = JobSpec(name="a", command="bash -c '\n  echo a\n  echo 训练\n'", output="/out")
    assert "command: |-\n  bash -c '\n    echo a\n    echo 训练\n  '\n" in spec_as_yaml(spec)
    assert read_back(spec_as_yaml(spec)).command == spec.command


def test_invisible_characters_beyond_65535_can_be_in_a_form() -> None:
    spec = JobSpec(name="a", command="x", output="/out", env={"A": "\U000e0041"})
    assert read_back(json.dumps(values_of(texts_of(spec_as_table(spec)))), "job.json") == spec


@pytest.mark.req("UI-08")
def test_letters_of_every_language_are_themselves_in_a_form() -> None:
    spec = JobSpec(name="a", command="x", output="/out", env={"A": "训练 é"})
    assert texts_of(spec_as_table(spec))["env"] == '{"A": "训练 é"}'
