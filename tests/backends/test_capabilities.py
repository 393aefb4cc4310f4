"""Every operation and ability is there, or is refused with the reason that the backend gives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.backends.base import LiveBackend
from cockpit.backends.demo.backend import open_demo
from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.member import Opened
from cockpit.backends.slurm.acting import CHANGES
from cockpit.backends.slurm.backend import CAPABILITIES
from cockpit.backends.slurm.opening import open_recorded
from cockpit.backends.snapshot.backend import open_snapshot
from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest, LogSearch, LogStream
from cockpit.model.capabilities import Ability
from cockpit.model.directives import Directive, MoveToTop, SendSignal, SubmitScript, UpdateJob
from cockpit.model.operations import Style
from cockpit.model.refusal import RefusalKind
from cockpit.protocol.operations import TABLE
from tests.backends.kubernetes.conftest import open_fake
from tests.doubles.kubernetes_api import FakeApi

KINDS = ("demo", "snapshot", "fleet", "recorded Slurm", "Kubernetes")


@pytest.fixture(params=KINDS)
async def backend(request: pytest.FixtureRequest, tmp_path: Path, young_campus: str) -> AsyncIterator[LiveBackend]:
    if request.param == "recorded Slurm":
        slurm, _ = await open_recorded("22.05")
        yield slurm
        await slurm.close()
        return
    if request.param == "Kubernetes":
        async with FakeApi() as server:
            kubernetes = open_fake(server, tmp_path)
            yield kubernetes
            await kubernetes.close()
        return
    demo = await open_demo(young_campus, folder=tmp_path / "demo", going=False)

    async def opened() -> Opened:
        return Opened(demo.backend, demo.now, demo.close)

    if request.param == "demo":
        yield demo.backend
    elif request.param == "snapshot":
        yield await open_snapshot(await demo.backend.snapshot(), demo.person)
    else:
        yield FleetBackend("all", [("lab", "demo", opened)], demo.now)
    await demo.close()


def call(backend: LiveBackend, name: str) -> Any:
    """Ask with arguments that no operation looks at before it is known to be there."""
    parameters = TABLE[name].parameters
    return backend.perform(TABLE[name], dict.fromkeys(parameters))


async def test_an_absent_operation_is_refused_with_its_reason(backend: LiveBackend) -> None:
    absent = backend.capabilities.absent
    assert absent.keys() <= TABLE.keys() | set(Ability)
    for name, reason in absent.items():
        print(f"{type(backend).__name__}: no {name}: {reason}")  # noqa: T201 - the suite shows what is absent
        if name in TABLE and TABLE[name].style is not Style.SPECIAL:
            with pytest.raises(RequestRefused) as no:
                await call(backend, name)
            assert (no.value.refusal.kind, no.value.refusal.message) == (RefusalKind.UNAVAILABLE, reason)


async def test_a_list_that_is_not_absent_is_answered(backend: LiveBackend) -> None:
    rows = [row for row in TABLE.values() if row.method is not None and not row.parameters]
    for row in rows:
        if row.style is not Style.CHANGES and not backend.capabilities.why_not(row.name):
            assert await getattr(backend, row.name)() is not None, row.name


@pytest.mark.parametrize(
    "wanted",
    [SubmitScript("#!/bin/sh\n"), SendSignal(1, "USR1"), UpdateJob(1, {"Nice": "5"}), MoveToTop(("1",))],
    ids=lambda wanted: type(wanted).__name__,
)
async def test_a_directive_is_refused_with_the_reason_of_its_ability(backend: LiveBackend, wanted: Directive) -> None:
    if reason := backend.why_not_directed(wanted):
        with pytest.raises(RequestRefused) as no:
            await backend.direct(wanted)
        assert (no.value.refusal.kind, no.value.refusal.message) == (RefusalKind.UNAVAILABLE, reason)


def test_slurm_has_commands_for_each_change_or_the_reason_why_it_lacks_it() -> None:
    """The engine's backends carry out what the engine does, so that only Slurm's may forget an operation."""
    changes = {row.name for row in TABLE.values() if row.style is Style.CHANGES}
    assert changes - CAPABILITIES.absent.keys() == CHANGES


@pytest.mark.req("UI-14")
async def test_a_merged_log_is_refused_with_the_reason_where_lines_have_no_times(backend: LiveBackend) -> None:
    if reason := backend.capabilities.why_not(Ability.MERGED_LOGS):
        for ask in (
            backend.logs(LogRequest(job=1, stream=LogStream.MERGED)),
            backend.search_log(LogSearch(job=1, stream=LogStream.MERGED, text="x")),
        ):
            with pytest.raises(RequestRefused) as no:
                await ask
            assert no.value.refusal.message == reason
