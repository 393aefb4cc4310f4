from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.runtime.containers.shim import hold, plain
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.sources import SourceError

PLAN = {
    "argv": ["true"],
    "env": {"HOME": "/home/ann"},
    "workdir": "/workspace",
    "home_access": "ro",
    "cgroup": "1f2e.7.1.0",
    "state": "/nowhere",
    "socket": "/nowhere",
    "rootless": True,
    "user": "ann",
    "mounts": [],
}


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    (tmp_path / "containers/7.1.0").mkdir(parents=True)
    return Attempt(str(tmp_path / "containers/7.1.0"))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("/workspace", "{w}"),
        ("/workspace/algorithm/t.sh", "{w}/algorithm/t.sh"),
        ("--out=/workspace/outputs", "--out={w}/outputs"),
        ("cat /workspace/a >'/workspace/b'", "cat {w}/a >'{w}/b'"),
        ("/a:/workspace:/b", "/a:{w}:/b"),
        ("/home/ann/workspace/x", "/home/ann/workspace/x"),
        ("/workspaces/x", "/workspaces/x"),
        ("./workspace", "./workspace"),
    ],
)
def test_workspace_paths_in_arguments_and_variables_are_replaced(attempt: Attempt, said: str, meant: str) -> None:
    outfit = plain.outfit(attempt, {**PLAN, "argv": [said], "env": {"X": said}, "hooks": {"after_end": said}})
    expected = meant.format(w=attempt.file("workspace"))
    assert (outfit["argv"], outfit["env"]["X"], outfit["hooks"]["after_end"]) == ([expected], expected, expected)


def test_a_plain_process_has_its_own_folders_and_links_to_those_of_the_job(attempt: Attempt, tmp_path: Path) -> None:
    output, volume = tmp_path / "out", tmp_path / "data"
    volume.mkdir()
    mounts = [
        {"what": "output", "source": str(output), "target": "/workspace/outputs", "writable": True, "create": True},
        {"what": "v", "source": str(volume), "target": "/workspace/volume/v", "writable": True, "create": False},
    ]
    plan = {**PLAN, "mounts": mounts, "home_access": "none", "workdir": "/workspace/volume/v"}
    for _ in range(2):  # a second holder finds what the first made
        plain.lay_out(attempt, plan)
    outfit = plain.outfit(attempt, plan)
    assert outfit["workdir"] == str(volume)
    assert outfit["env"]["HOME"] == outfit["env"]["TMPDIR"] == attempt.file("tmp")
    assert Path(attempt.file("workspace/outputs")).resolve() == output


def test_a_missing_folder_and_the_engines_own_are_refused(attempt: Attempt, tmp_path: Path) -> None:
    mount = {"what": "volumes[0]", "target": "/workspace/volume/v", "writable": True, "create": False}
    for source, why in ((tmp_path / "none", "no such file"), (tmp_path, "the engine's own folder")):
        plan = {**PLAN, "state": str(tmp_path), "mounts": [{**mount, "source": str(source)}]}
        with pytest.raises(SourceError, match=rf"volumes\[0\]: .*{why}"):
            plain.lay_out(attempt, plan)


def test_a_state_folder_with_an_unusable_path_is_refused(tmp_path: Path) -> None:
    attempt = Attempt(str(tmp_path / "my jobs/containers/7.1.0"))
    with pytest.raises(SourceError, match="choose a state_folder"):
        plain.lay_out(attempt, PLAN)


@pytest.mark.parametrize("may_be_plain", [True, False])
@pytest.mark.parametrize(
    ("error", "refused"), [(hold.Refused("unshare: No space left"), True), (OSError(28, "No space left"), False)]
)
def test_a_job_is_a_plain_process_only_where_the_machine_refuses_containers(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, error: Exception, refused: bool, may_be_plain: bool
) -> None:
    """A full disk is no reason: its error is the same as that of a limit on namespaces."""

    def fails(*_: object, **__: object) -> int:
        raise error

    attempt.write("plan.json", {**PLAN, "may_be_plain": may_be_plain})
    for name, stands_in in (("_launch", fails), ("_redirect_stderr", lambda _: None)):
        monkeypatch.setattr(hold, name, stands_in)
    monkeypatch.setattr(hold, "leave_machine", lambda *_: None)
    monkeypatch.setattr(hold.signal, "pthread_sigmask", lambda *_: None)
    monkeypatch.setattr(hold.os, "umask", lambda _: None)
    code = hold._shim(attempt, again=False, plain=False)
    if refused and may_be_plain:
        assert (code, attempt.read("exit.json")) == (hold.REFUSED, None)
    else:
        told = attempt.read("exit.json")["lost"]
        assert told.startswith("the container could not be made: ")
        assert ("cockpit doctor" in told) == refused
