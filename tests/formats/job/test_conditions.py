"""When a job may start, as its file says it: moments, other jobs, and the tasks of an array."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.errors import SpecErrors
from cockpit.formats.job.conditions import Dependencies, Indices
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.kinds import Reading
from cockpit.model.ids import Millis
from cockpit.model.spec import Array, Dependency, DependencyKind, JobSpec, PriorityWord

NOW = Millis(1_700_000_000_000)
HOUR = 3_600_000


def one(now: Millis | None = NOW, **fields: object) -> JobSpec:
    job = {"name": "a", "command": "x", "output": "out", **fields}
    (spec,) = read_jobs("job.json", json.dumps(job), "/work", defaults=Defaults(now=now))
    return spec


def errors(now: Millis | None = NOW, **fields: object) -> list[str]:
    with pytest.raises(SpecErrors) as refused:
        one(now, **fields)
    return [error.removeprefix("job.json: ") for error in refused.value.errors]


@pytest.mark.req("JT-25")
def test_account_partitions_qos_and_priority_are_read() -> None:
    spec = one(account="nlp", partition="gpu", qos="high", priority="urgent", nice=-5, reservation="course")
    assert (spec.account, spec.partitions, spec.qos, spec.nice) == ("nlp", ("gpu",), "high", -5)
    assert (spec.priority, spec.reservation) == (PriorityWord.URGENT, "course")
    assert one(partitions=["gpu", "cpu"]).partitions == ("gpu", "cpu")
    assert "partitions: says again what another field says; keep one of them" in errors(partition="a", partitions=[])
    assert errors(priority="soon") == ['priority: is the text "soon"; write normal or urgent or very-urgent']
    assert errors(nice=2_147_483_646)[0].startswith("nice: 2147483646 is not between")
    assert errors(partitions=["gpu", "gpu"]) == ['partitions: the name "gpu" is there twice; each may be there once']


@pytest.mark.req("JT-25", "SC-10")
@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-15T00:13:20+02:00", NOW),
        ("2023-11-14 22:13:20.500Z", NOW + 500),
        ("2023-11-14T22:13+0000", NOW - 20_000),
        ("now", NOW),
        ("now+60", NOW + 60_000),
        ("now+2h", NOW + 2 * HOUR),
        ("now+5hours", NOW + 5 * HOUR),
        ("now+1week", NOW + 7 * 24 * HOUR),
        ("now + 1h30m", NOW + 3 * HOUR // 2),
        ("now+90minutes", NOW + 3 * HOUR // 2),
        ("now+2days", NOW + 48 * HOUR),
    ],
)
def test_times_are_accepted_as_in_sbatch(text: str, millis: int) -> None:
    assert one(begin_at=text).begin_at == millis


@pytest.mark.req("JT-25")
def test_invalid_times_are_refused_with_advice() -> None:
    assert "zone: 2026-10-05T09:00:00+02:00" in errors(begin_at="2026-10-05T09:00")[0]
    assert "no day or no hour" in errors(deadline="2026-02-30T09:00Z")[0]
    assert "no moment" in errors(begin_at="tomorrow")[0]
    assert "no time" in errors(begin_at="now+soon")[0]
    assert errors(begin_at=5)[0].startswith("begin_at: is the number 5; write")
    assert "needs a clock" in errors(None, begin_at="now+2h")[0]
    assert errors(begin_at="now+9999999weeks")[0].startswith("begin_at: ")


@pytest.mark.req("JT-25", "SC-10")
def test_a_deadline_before_the_earliest_end_is_refused() -> None:
    assert errors(begin_at="now+1h", time_limit="1h", deadline="now+1h30m")[0].startswith("deadline: comes before")
    assert one(begin_at="now+1h", time_limit="30m", deadline="now+1h30m").deadline_at == NOW + 3 * HOUR // 2
    assert one(begin_at="now+1h", deadline="now+2h").limit_by_default


@pytest.mark.req("JT-25", "SC-10")
def test_dependencies_in_one_text_or_a_list() -> None:
    kinds = DependencyKind
    expected = (Dependency(kinds.AFTER_OK, 12), Dependency(kinds.AFTER_OK, 13), Dependency(kinds.SINGLETON))
    assert one(dependencies="afterok:12:13,singleton").dependencies == expected
    assert one(dependencies=["afterok:12", "afterok:13", "singleton"]).dependencies == expected
    assert one(dependencies=["afterok:12:13, singleton"]).dependencies == expected
    mixed = (Dependency(kinds.AFTER_OK, 1), Dependency(kinds.AFTER_OK, 2), Dependency(kinds.AFTER_ANY, 3))
    assert one(dependencies="afterok:1:2,afterany:3").dependencies == mixed


@pytest.mark.req("JT-25", "SC-10")
def test_a_task_of_an_array_is_named_as_it_is_shown() -> None:
    read = one(dependencies="afterok:123_4:5")
    assert read.dependencies == (Dependency(DependencyKind.AFTER_OK, 123, 4), Dependency(DependencyKind.AFTER_OK, 5))
    assert Dependencies().write(read.dependencies) == ["afterok:123_4", "afterok:5"]


@pytest.mark.req("JT-25")
@pytest.mark.parametrize(
    ("value", "path", "advice"),
    [
        ("afterok", "dependencies", "afterok:123"),
        ("before:12", "dependencies", "afterok, afterany"),
        ("after:12", "dependencies", "waits for a beginning"),
        ("afterok:12+5", "dependencies", "waits for a beginning"),
        ("afterok:12?afterany:13", "dependencies", "write a comma instead of each ?"),
        ("singleton:3", "dependencies", "takes no job"),
        (["afterok:1", "afterok:1_x"], "dependencies[1]", "give its id"),
        ("afterok:1_5000000", "dependencies[0]", "4000000"),
        (["afterok:1", 7], "dependencies[1]", "afterok:123"),
        ({"afterok": 1}, "dependencies", "list of such"),
        ("afterok:0", "dependencies[0]", "needs a job"),
    ],
)
def test_errors_in_dependencies_have_their_position(value: object, path: str, advice: str) -> None:
    (error,) = errors(dependencies=value)
    assert error.startswith(f"{path}: ")
    assert advice in error


@pytest.mark.req("JT-25", "SC-10")
@pytest.mark.parametrize(
    ("text", "indices", "at_once"),
    [
        ("0-3%2", (0, 1, 2, 3), 2),
        ("1,3,5-9:2", (1, 3, 5, 7, 9), 0),
        ("7", (7,), 0),
        (7, (7,), 0),
        ("5-6,1-5", (1, 2, 3, 4, 5, 6), 0),
    ],
)
def test_arrays_are_accepted_as_in_sbatch(text: object, indices: tuple[int, ...], at_once: int) -> None:
    assert one(array=text).array == Array(indices, at_once)


@pytest.mark.req("JT-25")
@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "1-5:0", "0-9%0", "1,,2", "0-4000000000", "0-100000", "4000001", "0-9%", -1, 1.5, None]
)
def test_invalid_or_too_large_arrays_are_refused_quickly(text: object) -> None:
    assert errors(array=text)[0].startswith("array: ")


def test_large_arrays_are_written_shortly() -> None:
    assert Indices().write(Array(tuple(range(0, 100_000, 2)), 5)) == "0-99998:2%5"
    assert Indices().write(Array((0, 1, 5, 6, 7, 20))) == "0,1,5-7,20"


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(0, 9))
def test_every_array_reads_back(indices: set[int], at_once: int) -> None:
    array = Array(tuple(sorted(indices)), at_once)
    reading = Reading("/", "")
    assert Indices().read(Indices().write(array), "array", reading) == array
    assert not reading.errors
