"""What a user who may see another user's job learns of its secrets: their names, and no byte of their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import edit
from cockpit.errors import RequestRefused
from cockpit.model import events
from cockpit.model.asking import LogRequest, LogSearch, LogStream
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.masking import revealed
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access
from cockpit.protocol import messages
from cockpit.runtime import acting, fleet_table, reading
from cockpit.runtime.logs import log_path
from cockpit.runtime.request_context import RequestContext
from tests.builders import ANN, BOB, a_spec
from tests.runtime.host_world import eventually
from tests.runtime.test_reading import engine, happens, world

if TYPE_CHECKING:
    from cockpit.runtime.engine import Engine
    from tests.runtime.host_world import World

__all__ = ["engine", "world"]
pytestmark = pytest.mark.req("TR-10", "TR-02")
VALUE = "Planted-value-7"
URL = "postgres://u:planted9@db/x"
ENV = {"HF_TOKEN": VALUE, "DATABASE": URL, "EPOCHS": "3"}
MASKED = {"HF_TOKEN": "***", "DATABASE": "postgres://u:***@db/x", "EPOCHS": "3"}
OWNER = RequestContext(Actor(ANN, admin=False, projects=frozenset({"nlp"})))
MEMBER = RequestContext(Actor(BOB, admin=False, projects=frozenset({"nlp"})))
ADMIN = RequestContext(Actor(BOB, admin=True))
OTHERS = pytest.mark.parametrize("other", [MEMBER, ADMIN], ids=["member", "administrator"])


async def of_ann(world: World, **fields: Any) -> JobId:
    job = JobId(max(world.host.machine.state.jobs, default=0) + 1)
    spec = a_spec(env=ENV, access=Access.RW, **fields)
    # Held: no pass starts it between the steps of the test.
    await happens(world, events.JobSubmitted(job, spec, ANN, "nlp"), events.JobHeld(job, "ann"))
    return job


@OTHERS
async def test_no_answer_of_the_engine_has_the_secrets_of_another_users_job(
    world: World, engine: Engine, other: RequestContext
) -> None:
    job = await of_ann(world)
    await happens(world, events.JobEdited(job, a_spec(env=ENV, access=Access.RW)))

    async def answers(by: RequestContext) -> list[bytes]:
        of_job = [piece async for piece in reading.events(engine, by, messages.EventsArgs(job=job))]
        of_all = [piece async for piece in reading.events(engine, by, messages.EventsArgs())]
        given = [
            await reading.job(engine, by, messages.JobArgs(job)),
            await fleet_table.own_object(engine, by, messages.OwnObjectArgs(job)),
            of_job,
            of_all,
        ]
        return [msgspec.json.encode(each) for each in given]

    for answer in await answers(OWNER):
        assert VALUE.encode() in answer
    with revealed():
        for answer in await answers(other):
            assert VALUE.encode() not in answer
            assert b"planted9" not in answer
            assert b"HF_TOKEN" in answer
    assert (await reading.job(engine, other, messages.JobArgs(job))).job.spec.env == MASKED


@OTHERS
async def test_the_end_of_another_users_job_is_reported_without_its_secrets(
    world: World, engine: Engine, other: RequestContext
) -> None:
    job = await of_ann(world)
    await acting.cancel(engine, OWNER, messages.CancelArgs(job))
    ended = await reading.wait(engine, other, messages.WaitArgs(job, timeout_seconds=60))
    assert ended is not None
    assert ended.spec.env == MASKED
    owned = await reading.wait(engine, OWNER, messages.WaitArgs(job, timeout_seconds=60))
    assert owned is not None
    assert owned.spec.env == ENV


@OTHERS
async def test_an_edit_by_another_user_keeps_the_secrets_that_it_leaves_alone(
    world: World, engine: Engine, other: RequestContext
) -> None:
    job = await of_ann(world)
    seen = (await reading.job(engine, other, messages.JobArgs(job))).job.spec
    await acting.edit(engine, other, messages.EditArgs(job, msgspec.structs.replace(seen, env={**seen.env, "N": "1"})))
    assert world.host.machine.state.jobs[job].spec.env == {**ENV, "N": "1"}
    given = msgspec.structs.replace(seen, env={"HF_TOKEN": "of-bob", "OTHER": "***"})
    refused = edit(world.host.machine, world.host.machine.state.jobs[job], given, actor=other.actor)
    assert isinstance(refused, Refusal)
    assert refused.message == "env.OTHER: has *** in place of a secret; write the true value or remove the variable"


@OTHERS
async def test_a_copy_by_another_user_is_refused_while_it_has_masks_for_secrets(
    world: World, engine: Engine, other: RequestContext
) -> None:
    seen = (await reading.job(engine, other, messages.JobArgs(await of_ann(world)))).job.spec
    copy = msgspec.structs.replace(seen, name="copy", access=Access.RO)
    with pytest.raises(RequestRefused) as refused:
        await acting.submit(engine, other, messages.SubmitArgs((copy,)))
    assert refused.value.refusal.kind is RefusalKind.INVALID
    assert refused.value.refusal.message.splitlines() == [
        f"env.{name}: has *** in place of a secret; write the true value or remove the variable"
        for name in ("HF_TOKEN", "DATABASE")
    ]
    mine = msgspec.structs.replace(copy, env={**MASKED, "HF_TOKEN": "of-bob", "DATABASE": "postgres://db/x"})
    await acting.submit(engine, other, messages.SubmitArgs((mine,)))


async def started(world: World, engine: Engine, text: bytes) -> JobId:
    job = await of_ann(world)
    await happens(world, events.JobReleased(job))
    await eventually(lambda: world.state(job) == "running")
    path = log_path(engine.logs, ReplicaId(job, 1, 0), LogStream.STDOUT)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return job


@OTHERS
async def test_a_log_shows_a_secret_to_its_owner_alone_wherever_a_window_cuts_it(
    world: World, engine: Engine, other: RequestContext
) -> None:
    text = b"before " + VALUE.encode() + b" behind\nEPOCHS=3\n"
    hidden = text.replace(VALUE.encode(), b"*" * len(VALUE))
    job = await started(world, engine, text)
    for by, shown in ((OWNER, text), (other, hidden)):
        for size in (1, 3, len(VALUE), len(text)):
            pieces = [
                (await reading.logs(engine, by, LogRequest(job=job, offset=at, limit=size))).data
                for at in range(0, len(text), size)
            ]
            assert b"".join(pieces) == shown, size
        for at in range(len(text)):
            assert (await reading.logs(engine, by, LogRequest(job=job, offset=at - len(text)))).data == shown[at:]
    detail = await reading.job(engine, other, messages.JobArgs(job))
    assert VALUE not in msgspec.json.encode(detail).decode()


@OTHERS
async def test_a_search_finds_nothing_within_another_users_secret(
    world: World, engine: Engine, other: RequestContext
) -> None:
    job = await started(world, engine, b"Planted 1\n" + VALUE.encode() + b"\nPlanted 2\n")

    async def found(by: RequestContext, text: str, **wanted: Any) -> tuple[Any, int]:
        matches = await reading.search_log(engine, by, LogSearch(job=job, text=text, **wanted))
        return tuple(at for at, _ in matches.found), matches.count

    assert await found(OWNER, "planted", most=9) == ((0, 10, 26), 3)
    assert await found(other, "planted", most=9) == ((0, 26), 2)
    assert await found(other, "planted", most=0) == ((), 2)
    assert await found(other, "value-7", most=9) == ((), 0)
    assert await found(other, "P.*-v", pattern=True, most=9) == ((), 0)
    assert await found(other, "", most=0) == ((), 3)
    with pytest.raises(RequestRefused, match="cannot be searched"):
        await found(other, "1(?=.Planted-v)", pattern=True)
