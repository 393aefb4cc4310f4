"""The form of a new job on a Kubernetes cluster, whose jobs need an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.runtime.clock import SystemClock
from cockpit.tui.opening import Session
from tests.backends.kubernetes.conftest import open_fake
from tests.doubles.kubernetes_api import FakeApi
from tests.tui.driver import at_the_cockpit

JOB = "/apis/batch/v1/namespaces/team-a/jobs/mine"


@pytest.mark.req("UI-08", "KU-07")
async def test_the_image_is_a_field_of_its_own_and_its_lack_is_shown_there(tmp_path: Path) -> None:
    async with FakeApi() as server:
        server.readable = ("",)
        backend = open_fake(server, tmp_path)
        session = Session(
            backend=backend,
            now=SystemClock().now,
            user="alice",
            read_jobs=lambda source, text, folder: read_jobs(source, text, folder, defaults=Defaults()),
            close=backend.close,
        )
        async with at_the_cockpit(session, (120, 40)) as cockpit:
            await cockpit.press("n").sees("New job", "image").type("mine").press("Down").type("true")
            await cockpit.sees("a pod needs an image", "1 field is wrong").press("Ctrl-s")
            focused = cockpit.app.focused
            assert focused is not None
            await cockpit.type("example/train:1").misses("a pod needs an image").press("Ctrl-s").sees("submitted")
        (container,) = server.object(JOB)["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "example/train:1"
