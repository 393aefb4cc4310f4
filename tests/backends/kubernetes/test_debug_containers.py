"""Containers of other images beside those of a running pod."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from cockpit.backends.kubernetes import debug_containers as module
from cockpit.backends.kubernetes.debug_containers import debug_container
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.errors import RequestRefused
from cockpit.model.refusal import RefusalKind
from tests.backends.kubernetes.objects import a_running_pod
from tests.doubles.kubernetes_api import FakeApi, Reply

POD = "/api/v1/namespaces/team-a/pods/train-0"
STEM = f"cockpit_debug_{hashlib.sha256(b'tools:1').hexdigest()[:8]}"
RUNNING = {"running": {"startedAt": "2026-03-01T09:05:00Z"}}
pytestmark = pytest.mark.req("KU-09")


def shows(server: FakeApi, **states: dict[str, Any]) -> None:
    """Answer the next look at the pod with debug containers in these states; `_` in a name stands for a hyphen."""
    names = {name.replace("_", "-"): state for name, state in states.items()}
    pod = {
        "metadata": {"name": "train-0"},
        "spec": {"containers": [{"name": "main"}], "ephemeralContainers": [{"name": name} for name in names]},
        "status": {"ephemeralContainerStatuses": [{"name": name, "state": state} for name, state in names.items()]},
    }
    server.answer_next(f"GET {POD}", Reply(body=json.dumps(pod).encode()))


def may_patch(server: FakeApi, reply: Reply | None = None) -> None:
    server.answer_next(f"PATCH {POD}/ephemeralcontainers", reply or Reply(body=b"{}"))


def patches(server: FakeApi) -> int:
    return sum(each.startswith("PATCH") for each in server.requests)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)


async def test_one_that_runs_serves_the_next_shell_too(server: FakeApi, api: Api) -> None:
    shows(server)
    may_patch(server)
    shows(server, other={"waiting": {"reason": "ContainerCreating"}})
    name = await first_name(server, api)
    shows(server, **{name.replace("-", "_"): RUNNING})
    assert await debug_container(api, a_running_pod(), "tools:1") == name
    assert patches(server) == 1


async def first_name(server: FakeApi, api: Api) -> str:
    """Make the first debug container with the image, which runs at the second look."""
    shows(server, **{f"{STEM}_0": RUNNING})
    name = await debug_container(api, a_running_pod(), "tools:1")
    assert name == f"{STEM}-0".replace("_", "-")
    return name


async def test_one_that_has_ended_keeps_its_name(server: FakeApi, api: Api) -> None:
    shows(server, **{f"{STEM}_0": {"terminated": {"exitCode": 0}}})
    may_patch(server)
    shows(server, **{f"{STEM}_0": {"terminated": {"exitCode": 0}}, f"{STEM}_1": RUNNING})
    assert await debug_container(api, a_running_pod(), "tools:1") == f"{STEM}-1".replace("_", "-")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"waiting": {"reason": "ErrImagePull", "message": "not found"}}, "of tools:1 does not start: not found"),
        ({"waiting": {"reason": "InvalidImageName"}}, "of tools:1 does not start: InvalidImageName"),
        ({"terminated": {"exitCode": 127}}, "of tools:1 ended with exit code 127; it needs sh and sleep"),
    ],
)
async def test_an_image_that_does_not_start_is_refused_with_the_reason(
    server: FakeApi, api: Api, state: dict[str, Any], words: str
) -> None:
    shows(server)
    may_patch(server)
    shows(server, **{f"{STEM}_0": state})
    with pytest.raises(RequestRefused, match=words):
        await debug_container(api, a_running_pod(), "tools:1")


async def test_a_container_that_does_not_run_in_time_is_given_up(
    server: FakeApi, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 0.0)
    shows(server)
    may_patch(server)
    with pytest.raises(RequestRefused, match="did not start within 0 s"):
        await debug_container(api, a_running_pod(), "tools:1")


@pytest.mark.parametrize(("code", "kind"), [(403, RefusalKind.DENIED), (422, RefusalKind.INVALID)])
async def test_a_server_that_does_not_allow_it_is_quoted(
    server: FakeApi, api: Api, code: int, kind: RefusalKind
) -> None:
    shows(server)
    may_patch(server, Reply.failure(code, "No", "violates PodSecurity"))
    with pytest.raises(RequestRefused, match="violates PodSecurity") as refused:
        await debug_container(api, a_running_pod(), "tools:1")
    assert refused.value.refusal.kind is kind


def test_it_has_the_volumes_of_the_jobs_container() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/part", "subPath": "a"}]
    made = module.container_of("debug", "tools:1", {"name": "main", "volumeMounts": mounts})
    assert (made["targetContainerName"], made["volumeMounts"]) == ("main", mounts[:1])
    assert "volumeMounts" not in module.container_of("debug", "tools:1", {"name": "main"})
