"""Slurm's lists of hosts: the texts are those that Slurm 22.05's own scontrol writes for them."""

from __future__ import annotations

import pytest

from cockpit.runtime.containers.slurmtools.hostlists import HostListError, compress, expand

pytestmark = pytest.mark.req("LA-71")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10],login", ["n08", "n09", "n10", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("a[1,3]x,b", ["a1x", "a3x", "b"]),
        ("", []),
    ],
)
def test_a_hostlist_expands_to_its_names(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n1]"])
def test_an_invalid_hostlist_is_refused(text: str) -> None:
    with pytest.raises(HostListError):
        expand(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n3"], "n[1,3]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["login"], "login"),
        (["a1", "b1"], "a1,b1"),
    ],
)
def test_names_are_written_as_the_shortest_list(names: list[str], text: str) -> None:
    assert compress(names) == text
    assert expand(text) == names
