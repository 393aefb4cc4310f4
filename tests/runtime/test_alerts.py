"""Which alerts are sent, and to a real web server with a signature that it checks."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from datetime import UTC
from typing import TYPE_CHECKING

import pytest

from cockpit.engine.effects import SendAlert
from cockpit.model.alerts import AlertKind
from cockpit.model.ids import Millis
from cockpit.present.events.sentences import event_kind, event_sentence
from cockpit.runtime.alert_senders import Webhook
from cockpit.runtime.alerts import PAUSES, AlertLimit
from cockpit.runtime.troubles import Outages
from tests.builders import HOUR, MINUTE, NOON, a_spec
from tests.doubles.http_service import HttpService, Reply
from tests.doubles.samples import job
from tests.runtime.alert_world import FAULT, FELL, alert_world, alerts_of, private
from tests.runtime.host_world import World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECRET = "the-secret-of-the-hook"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = await alert_world(tmp_path)
    yield world
    await world.stop()


async def sentences(world: World) -> list[str]:
    records = await world.journal.events(job=None, after=0, limit=99)
    return [event_sentence(each, UTC) for each in records if "receiver" in event_kind(each.body)]


@pytest.mark.req("EL-13", "TR-10")
async def test_a_webhook_gets_the_alert_with_the_jobs_address_and_can_check_the_signature(
    world: World, http_service: HttpService, tmp_path: Path
) -> None:
    http_service.answer("POST /in?key=1", status=204)
    webhook = Webhook(url=f"{http_service.address}/in?key=1", secret_file=private(tmp_path / "secret", f"{SECRET}\n"))
    await alerts_of(world, webhook=webhook).tell(job(), FELL)
    (request,) = http_service.requests
    said = json.loads(request.body)
    assert (said["alert"], said["address"], said["job"]) == ("performance", f"lab:{job().shown_id}", job().id)
    assert request.headers["content-type"] == "application/json"
    stamp = request.headers["x-cockpit-timestamp"]
    assert int(stamp) == NOON // 1000
    signed = hmac.new(SECRET.encode(), f"{stamp}.".encode() + request.body, hashlib.sha256).hexdigest()
    assert request.headers["x-cockpit-signature"] == f"sha256={signed}"
    assert SECRET.encode() not in request.body


@pytest.mark.req("EL-13")
async def test_a_webhook_without_a_secret_is_not_signed(world: World, http_service: HttpService) -> None:
    http_service.answer("POST /in")
    await alerts_of(world, webhook=Webhook(url=f"{http_service.address}/in")).tell(job(), FELL)
    assert "x-cockpit-signature" not in http_service.requests[0].headers


@pytest.mark.req("EL-13")
async def test_a_webhook_that_fails_is_tried_three_times_and_reported_once(
    world: World, http_service: HttpService, capfd: pytest.CaptureFixture[str]
) -> None:
    outages = Outages()
    http_service.answer("POST /token/s3cr3t", status=503)
    sending = alerts_of(world, outages, webhook=Webhook(url=f"{http_service.address}/token/s3cr3t"))
    await sending.tell(job(), FELL)
    assert len(http_service.requests) == 3
    assert world.clock.waits == [1000 * each for each in PAUSES]
    await sending.tell(job(), FELL)
    name = "the alerts' webhook http://127.0.0.1"
    assert capfd.readouterr().err == f"cockpit engine: {name} answers with status 503\n"
    assert outages.sentences == ("The alerts' webhook http://127.0.0.1 answers with status 503.",)
    replies = iter([Reply(429), Reply(200)])
    http_service.replies["POST /token/s3cr3t"] = lambda _: next(replies)
    await sending.tell(job(), FELL)
    assert outages.sentences == ()
    assert await sentences(world) == [f"{name} answers with status 503", f"{name} takes alerts again"]


@pytest.mark.req("EL-13")
async def test_a_refused_alert_is_not_sent_again(world: World, http_service: HttpService) -> None:
    outages = Outages()
    http_service.answer("POST /in", status=403)
    await alerts_of(world, outages, webhook=Webhook(url=f"{http_service.address}/in")).tell(job(), FELL)
    assert len(http_service.requests) == 1
    assert "answers with status 403" in outages.sentences[0]


@pytest.mark.req("EL-13", "TR-10")
@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [(SECRET, 0o644, "is open to other users; chmod 600 it"), ("\n", 0o600, "is empty"), (None, 0, "cannot be read")],
)
async def test_a_secret_that_others_can_read_or_that_is_missing_is_not_used(
    world: World, http_service: HttpService, tmp_path: Path, text: str | None, mode: int, why: str
) -> None:
    outages, file = Outages(), tmp_path / "secret"
    if text is not None:
        private(file, text, mode)
    await alerts_of(world, outages, webhook=Webhook(url=f"{http_service.address}/in", secret_file=str(file))).tell(
        job(), FELL
    )
    assert http_service.requests == []
    assert why in outages.sentences[0]
    assert SECRET not in outages.sentences[0]


@pytest.mark.req("EL-13")
async def test_a_slow_receiver_delays_no_one_who_offers_an_alert(world: World, http_service: HttpService) -> None:
    job = await world.run(a_spec())
    sending = alerts_of(world, webhook=Webhook(url=f"{http_service.address}/in"))
    http_service.answer("POST /in")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.send_forever())
        for _ in range(3):
            sending.offer(SendAlert(job, FELL))
        assert http_service.requests == []
        await eventually(lambda: len(http_service.requests) == 3)
        task.cancel()


@pytest.mark.req("EL-13")
def test_alerts_in_an_hour_are_bounded(capfd: pytest.CaptureFixture[str]) -> None:
    limit = AlertLimit(per_hour=2)
    moments = [NOON, NOON + MINUTE, NOON + 2 * MINUTE, NOON + 3 * MINUTE, NOON + HOUR]
    assert [limit.admits(Millis(at)) for at in moments] == [True, True, False, False, True]
    assert capfd.readouterr().err == "cockpit engine: alerts are not sent: more than 2 in an hour\n"


@pytest.mark.req("EL-11", "EL-13")
async def test_an_alert_says_how_to_open_its_job(world: World, http_service: HttpService) -> None:
    http_service.answer("POST /in")
    channels = {"webhook": Webhook(url=f"{http_service.address}/in"), "url": "https://lab.example.org/?job={job}"}
    await alerts_of(world, **channels).tell(job(), FAULT)
    said = json.loads(http_service.requests[0].body)
    assert (said["alert"], said["command"]) == ("fault", f"cockpit job {job().shown_id}")
    assert said["url"] == f"https://lab.example.org/?job={job().shown_id}"
    assert (said["nodes"], said["text"]) == (["n03"], "a fault was found on n03: card 2 does not answer")


@pytest.mark.req("EL-13")
async def test_each_way_gets_the_kinds_that_are_set_for_it(
    world: World, http_service: HttpService, tmp_path: Path
) -> None:
    http_service.answer("POST /in")
    line, fault = tmp_path / "line", frozenset({AlertKind.FAULT})
    ways = {"webhook": Webhook(url=f"{http_service.address}/in"), "command": f"tee {line}"}
    sending = alerts_of(world, webhook_kinds=fault, command_kinds=frozenset(AlertKind) - fault, **ways)
    await sending.tell(job(), FELL)
    assert (http_service.requests, json.loads(line.read_text())["alert"]) == ([], "performance")
    line.unlink()
    await sending.tell(job(), FAULT)
    assert (len(http_service.requests), line.exists()) == (1, False)


@pytest.mark.req("EL-13")
async def test_an_alert_that_nothing_is_set_for_is_none_of_the_hour(world: World, http_service: HttpService) -> None:
    http_service.answer("POST /in")
    job = await world.run(a_spec())
    webhook = Webhook(url=f"{http_service.address}/in")
    sending = alerts_of(world, per_hour=1, webhook=webhook, webhook_kinds=frozenset({AlertKind.FAULT}))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.send_forever())
        for alert in (FELL, FAULT):
            sending.offer(SendAlert(job, alert))
        await eventually(lambda: http_service.requests)
        task.cancel()
    assert json.loads(http_service.requests[0].body)["alert"] == "fault"


@pytest.mark.req("EL-13")
async def test_a_command_that_fails_is_an_event_once(world: World, tmp_path: Path) -> None:
    flag = tmp_path / "works"
    sending = alerts_of(world, Outages(), command=f"test -e {flag}")
    for _ in range(2):
        await sending.tell(job(), FELL)
    flag.touch()
    await sending.tell(job(), FELL)
    name = "the alerts' command test"
    assert await sentences(world) == [f"{name} ended with 1", f"{name} takes alerts again"]
