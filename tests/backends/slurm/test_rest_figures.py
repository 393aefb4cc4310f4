"""Single values of slurmrestd's JSON, in the shapes of its versions."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping.rest import accounts, cluster, ended, figures

pytestmark = pytest.mark.req("SL-03")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a  b", "a  b"),
        (" a  b", "a b"),
        ("a\n  b", "a b"),
        ("a\r\nb", "a b"),
        (["a", "b", 3], "a,b,3"),
        (None, ""),
        ({}, ""),
        (7, "7"),
    ],
)
def test_a_text_is_one_line_and_else_unchanged(value: object, shown: str) -> None:
    assert figures.word(value) == shown


@pytest.mark.parametrize(
    ("value", "shown", "count"),
    [
        (5, "5", 5),
        (5.0, "5", 5),
        (2.5, "2.5", 2),
        ({"set": True, "infinite": False, "number": 5}, "5", 5),
        ({"set": False, "infinite": False, "number": 5}, "", 0),
        ({"set": False, "infinite": True, "number": 0}, "UNLIMITED", 0),
        (None, "", 0),
        (True, "", 0),
        ("nothing", "nothing", 0),
    ],
)
def test_a_figure_has_one_text_in_every_version(value: object, shown: str, count: int) -> None:
    assert (figures.figure(value), figures.count(value)) == (shown, count)


def test_moments_and_durations_are_written_in_seconds() -> None:
    assert [figures.moment(each) for each in (0, 1700, None)] == ["N/A", "1700", "N/A"]
    assert [figures.minutes(each) for each in (90, None, {"infinite": True})] == ["5400", "", "UNLIMITED"]
    assert figures.at({"a": {"b": 1}}, "a", "b") == 1
    assert figures.at({"a": 1}, "a", "b") is None
    assert (figures.raw("a\nb"), figures.raw(3)) == ("a\nb", "")


@pytest.mark.parametrize(
    ("flags", "default"),
    [
        ({"flags": "DEFAULT"}, "YES"),
        ({"flags": "default,hidden"}, "YES"),
        ({"partition": {"flags": ["HIDDEN", "DEFAULT"]}}, "YES"),
        ({"flags": "NOT_DEFAULT"}, "NO"),
        ({"partition": {"flags": []}}, "NO"),
        ({}, "NO"),
    ],
)
def test_the_default_partition_is_known_by_its_flag(flags: dict[str, object], default: str) -> None:
    assert cluster.partition({"name": "gpu", **flags})["Default"] == default


@pytest.mark.parametrize(
    ("maxima", "peak"),
    [
        (
            [{"type": "cpu", "count": 1 << 40}, {"type": "mem", "count": 5 << 20}, {"type": "mem", "count": 7 << 20}],
            "7168K",
        ),
        ([{"type": "cpu", "count": 9}], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_peak_of_a_step_is_the_most_memory_of_any_task(maxima: object, peak: str) -> None:
    assert ended._peak({"tres": {"requested": {"max": maxima}}}) == peak


@pytest.mark.parametrize(
    ("value", "members"), [(["a", "b"], "a,b"), ([], ""), ("a", "a"), ("a,b", "a,b"), ("", ""), (None, "")]
)
def test_members_are_a_list_or_a_text(value: object, members: str) -> None:
    assert accounts._members(value) == members
