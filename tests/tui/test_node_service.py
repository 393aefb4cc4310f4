"""Nodes that are kept or out of service: a person looks, and an administrator changes it."""

from __future__ import annotations

import pytest

from cockpit.model.cluster import Reservation
from cockpit.model.ids import Millis, NodeName
from cockpit.model.staging import StagedCopy
from tests.tui.lab import the_lab

HOUR = 3_600_000


@pytest.mark.req("SC-10")
async def test_reservations_are_made_seen_and_ended_from_the_nodes() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit.press("2").sees("NODE").press("R").sees("There are no reservations")
        first = (await lab.backend.nodes())[0].node.name
        await cockpit.press("K").sees(f"reservations create --nodes {first} --duration 4h").type("course --users alice")
        await cockpit.press("Enter").sees("reserved course", "◆ resv", "for reservation course")
        await (
            cockpit.press("R").sees("course", "for alice", "now, until").press("X").sees("End the reservation course?")
        )
        await cockpit.press("Enter").misses("End the reservation").press("R").sees("course").press("X", "y")
        await cockpit.sees("ended course").misses("◆ resv")


@pytest.mark.req("SC-10")
async def test_a_reservation_shows_its_nodes() -> None:
    async with the_lab() as lab:
        nodes = [row.node.name for row in await lab.backend.nodes()]
        now = lab.cockpit.app.state.now()
        upkeep = Reservation(
            name="upkeep", nodes=(NodeName(nodes[-1]),), start_at=now + HOUR, end_at=now + 2 * HOUR, maintenance=True
        )
        await lab.backend.make_reservation(upkeep)
        cockpit = lab.cockpit.press("2", "R").sees("upkeep", "maintenance, no jobs").press("Enter")
        screen = await cockpit.sees(f"/ name:{nodes[-1]}").misses(nodes[0])
        assert "◆ resv" not in screen
        await cockpit.press(":").type("reservations end upkep").press("Enter").sees("There is no reservation")
        await cockpit.press(":").type("reservations create x --nodes y").press("Enter").sees("say until when")


@pytest.mark.req("JT-24", "UI-20")
async def test_a_node_is_drained_and_resumed() -> None:
    async with the_lab() as lab:
        first = (await lab.backend.nodes())[0].node.name
        cockpit = lab.cockpit.press("2").sees("NODE").press("g", "D").sees(f"nodes drain {first} --reason")
        await cockpit.type("'new memory'").press("Enter").sees(f"drained {first}", "■ drained", "new memory")
        await cockpit.press("D").sees(f"nodes resume {first}").press("Enter").sees(f"gave back {first}")
        await cockpit.press("D").sees("--reason").type("the fan isn't [red]well[/]").press("Enter")
        await cockpit.sees("■ drained", "the fan isn't [red]well[/]")
        await cockpit.press("D").sees(f"nodes resume {first}").press("Enter").sees(f"gave back {first}")
        await cockpit.misses("■ drained").press(":").type("nodes drian n1").press("Enter").sees("did you mean drain?")


@pytest.mark.req("EL-02", "UI-20")
async def test_a_spot_node_is_reclaimed_within_a_time() -> None:
    async with the_lab() as lab:
        first = (await lab.backend.nodes())[0].node.name
        cockpit = lab.cockpit.press("2").sees("NODE").press("g", "B").sees(f"reclaim {first} --grace 5m")
        await cockpit.press("Enter").sees(f"reclaimed {first}: running jobs have", "■ drained")
        await cockpit.sees("its provider takes it back").press("D").sees(f"nodes resume {first}").press("Enter")
        await cockpit.misses("■ drained").press(":").type("reclaim").press("Enter").sees(f"reclaim {first} --grace")
        await cockpit.press("Esc").press(":").type(f"reclaim {first} --grace soon").press("Enter").sees("--grace")


def kept(**fields: object) -> Reservation:
    return Reservation(name="course", nodes=(NodeName("n1"),), start_at=0, end_at=HOUR, **fields)


@pytest.mark.req("SC-10")
def test_a_reservation_is_created_by_the_command_line() -> None:
    from datetime import UTC

    from cockpit.present.tables.reservations import reservation_line

    now = Millis(1000)
    assert reservation_line(kept(users=("ann",)), now, UTC) == "now, until 01:00 · n1 · for ann"
    both = kept(users=("ann", "bob"), accounts=("nlp",))
    assert reservation_line(both, now, UTC).endswith("for ann and bob of account nlp")
    many = Reservation(
        name="x", nodes=tuple(NodeName(f"n{n}") for n in range(9)), start_at=HOUR, end_at=2 * HOUR, maintenance=True
    )
    assert reservation_line(many, now, UTC) == "01:00 to 02:00 · 9 nodes · maintenance, no jobs"


@pytest.mark.req("JT-50")
async def test_staged_copies_are_seen_and_removed_from_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("2").sees("NODE").press("C").sees("Nothing is staged.")
        at = Millis(0)
        cats = StagedCopy(
            key="4f2a",
            what="dataset",
            source="/data/cats",
            size=3 << 30,
            users=("bob",),
            made_at=at,
            used_at=at,
            jobs=(),
        )
        there = [cats]

        async def copies() -> list[StagedCopy]:
            return there

        async def remove(key: str) -> bool:
            there[:] = [each for each in there if each.key != key]
            return True

        executor = lab.backend._engine.host.executor
        monkeypatch.setattr(executor, "copies", copies)
        monkeypatch.setattr(executor, "remove_copy", remove)
        await lab.cockpit.press("C").sees("/data/cats", "dataset · 3G", "bob").press("X")
        await lab.cockpit.sees("Remove the copy of /data/cats?", "3G come free").press("y").sees("removed the copy of")
        assert there == []
