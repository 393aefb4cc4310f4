"""Every operation that needs a right is refused to a user without it, before it does anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.engine.access import Actor
from cockpit.model.operations import Right
from cockpit.model.refusal import RefusalKind
from cockpit.protocol.operations import TABLE
from cockpit.runtime import connection, server
from tests.builders import ANN, BOB
from tests.forged import SPEC, arguments_for
from tests.runtime.served import ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.runtime.peers import PeerSocket, Site

pytestmark = pytest.mark.req("TR-02", "TR-13")
OF_A_JOB = sorted(name for name, row in TABLE.items() if row.right in {Right.LOOK, Right.ACT})
OF_ADMINISTRATORS = sorted(name for name, row in TABLE.items() if row.right is Right.ADMINISTER)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEngine]:
    """With one job of ann's. From then on every client is bob, who is no administrator."""
    actors = [Actor(ANN, admin=True)]

    def peer_actor(_peer: PeerSocket, _site: Site) -> Actor:
        return actors[0]

    with pytest.MonkeyPatch.context() as patch, ServedEngine(tmp_path_factory.mktemp("engine")) as served:
        for module in (server, connection):
            patch.setattr(module, "peer_actor", peer_actor)
        with served.client() as ann:
            assert ann.ask("submit", {"specs": [{**SPEC, "hold": True}]}).no is None
        actors[0] = Actor(BOB, admin=False)
        yield served


@pytest.mark.parametrize("operation", OF_A_JOB)
def test_a_job_that_a_user_may_not_see_is_unknown_to_every_operation(engine: ServedEngine, operation: str) -> None:
    before = engine.call(lambda: engine.engine.host.machine.state.seq)
    with engine.client() as bob:
        refusal = bob.ask(operation, arguments_for(operation, 1)).no
    assert refusal is not None
    assert (refusal.kind, "There is no job 1" in refusal.message) == (RefusalKind.NOT_FOUND, True)
    assert engine.call(lambda: engine.engine.host.machine.state.seq) == before


@pytest.mark.parametrize("operation", OF_ADMINISTRATORS)
def test_what_only_administrators_may_do_is_refused_to_others(engine: ServedEngine, operation: str) -> None:
    before = engine.call(lambda: engine.engine.host.machine.state.seq)
    with engine.client() as bob:
        refusal = bob.ask(operation, arguments_for(operation, 1)).no
    assert refusal is not None
    assert refusal.kind is RefusalKind.DENIED
    assert engine.call(lambda: engine.engine.host.machine.state.seq) == before
