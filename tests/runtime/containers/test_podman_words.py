"""The arguments of podman."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from cockpit.runtime.containers.shim.podman import Layout, PodmanError, arguments, output_of
from tests.runtime.containers.test_plan import planned


def told(layout: Layout, option: str, **changed) -> list[str]:
    """What is given with this option."""
    plan = {**msgspec.to_builtins(planned()), **changed}
    words = arguments(plan, "cockpit-x", "abc", layout, 77, "/a/pid")
    assert words[0] == "create"
    assert words[-1] == "abc"
    return [value for name, value in pairwise(words) if name == option]


@pytest.mark.req("JT-30")
def test_no_character_of_a_path_adds_another_mount():
    layout = Layout([("/s/1", '/a,ro=false,b "c":d', False), ("/s/2", "/w", True)], masked=["/w/state"])
    assert told(layout, "--mount") == [
        'type=bind,src=/s/1,"dst=/a,ro=false,b ""c"":d",ro=true',
        "type=bind,src=/s/2,dst=/w",
        "type=tmpfs,dst=/w/state,tmpfs-size=4k,tmpfs-mode=755,ro=true",
    ]


@pytest.mark.req("LA-10")
def test_a_podman_container_joins_the_network_of_its_job_or_the_machines():
    assert told(Layout([]), "--network", network="/n", hosts={"j-0": "198.18.0.2"}) == ["ns:/proc/77/ns/net"]
    assert told(Layout([]), "--add-host", network="/n", hosts={"j-0": "198.18.0.2"}) == ["j-0:198.18.0.2"]
    assert told(Layout([]), "--network") == ["host"]
    assert told(Layout([]), "--add-host") == ["j-1:127.0.1.1"]


@pytest.mark.req("JT-47")
def test_a_podman_container_has_only_its_allocated_devices():
    assert told(Layout([], devices=["/dev/nvidia0"]), "--device") == ["/dev/nvidia0"]
    assert told(Layout([]), "--device") == []


def a_program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.req("JT-30")
def test_podman_starts_containers_with_runc_only_where_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    a_program(first, "podman", 'echo "$@"')
    second.mkdir()
    monkeypatch.setenv("PATH", f"{first}:{second}")
    assert output_of("image", "list") == "image list"
    a_program(second, "runc", "")
    assert output_of("image", "list") == "--runtime runc image list"


@pytest.mark.req("JT-30")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo warning >&2; echo 'Error: no such image' >&2; exit 125", "podman rmi: no such image"),
        ("exit 1", "podman rmi: no message"),
    ],
)
def test_an_error_of_podman_is_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    a_program(tmp_path, "podman", text)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PodmanError, match=f"^{message}$"):
        output_of("rmi", "x")
