"""A session with an access level has fewer rights than its user, whatever its client sends: the engine refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.clusters import choosing
from cockpit.errors import CockpitError, ProtocolMismatch
from cockpit.model.access_level import ACCESS_VARIABLE, AccessLevel, why_not
from cockpit.model.operations import Right, Style
from cockpit.model.refusal import RefusalKind
from cockpit.protocol.frames import Hello, check_access
from cockpit.protocol.operations import TABLE
from tests.forged import SPEC, arguments_for
from tests.runtime.served import ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.req("TR-08", "TR-02")
LEVELS = (*AccessLevel, "root")
"""The last one is none: what no engine knows must not give rights."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEngine]:
    """An engine of its only user, who may do everything with it; it has a held job."""
    with ServedEngine(tmp_path_factory.mktemp("engine")) as served:
        with served.client() as user:
            assert user.ask("submit", {"specs": [{**SPEC, "hold": True}]}).no is None
        yield served


def is_allowed(operation: str, level: str) -> bool:
    """What the documentation promises, in its own words."""
    row = TABLE[operation]
    changes = row.style is Style.CHANGES or operation in {"shell", "stop"}
    return (
        level == "admin"
        or (level == "own" and row.right is not Right.ADMINISTER)
        or (row.right is not Right.ADMINISTER and not changes)
    )


REFUSED = [(name, level) for name in sorted(TABLE) for level in LEVELS if not is_allowed(name, level)]


@pytest.mark.parametrize(("operation", "level"), REFUSED)
def test_what_a_level_does_not_allow_is_refused_and_changes_nothing(
    engine: ServedEngine, operation: str, level: str
) -> None:
    before = engine.call(lambda: engine.engine.host.machine.state.seq)
    with engine.client() as user:
        refusal = user.ask(operation, arguments_for(operation, 1), access=level).no
    assert refusal is not None
    assert (refusal.kind, "access level" in refusal.message) == (RefusalKind.DENIED, True)
    assert engine.call(lambda: engine.engine.host.machine.state.seq) == before


@pytest.mark.parametrize(("operation", "level"), [(name, level) for name in TABLE for level in ("", *LEVELS)])
def test_the_table_is_the_promise(operation: str, level: str) -> None:
    assert (why_not(level, TABLE[operation]) == "") is (level == "" or is_allowed(operation, level))


@pytest.mark.parametrize(("level", "kind"), [("read", RefusalKind.DENIED), ("own", None), ("admin", None), ("", None)])
def test_a_user_may_submit_jobs_except_where_the_session_only_reads(
    engine: ServedEngine, level: str, kind: RefusalKind | None
) -> None:
    with engine.client() as user:
        answer = user.ask("submit", {"specs": [{**SPEC, "name": f"at-{level}", "hold": True}]}, access=level)
    assert (answer.no.kind if answer.no is not None else None) == kind


@pytest.mark.parametrize(("level", "admin"), [("read", False), ("own", False), ("admin", True), ("", True)])
def test_only_a_session_with_all_rights_is_told_that_it_administers(
    engine: ServedEngine, level: str, admin: bool
) -> None:
    with engine.client() as user:
        answer = user.ask("overview", {}, access=level)
    assert answer.no is None
    assert msgspec.msgpack.decode(answer.ok)["admin"] is admin


def test_an_engine_that_knows_no_levels_is_not_used_by_a_session_that_has_one() -> None:
    older = Hello(protocol=(1, 1), version="0.1.0", capabilities=("jobs",), pid=1, state_folder="/")
    check_access(older, "")
    with pytest.raises(ProtocolMismatch, match="restart"):
        check_access(older, "read")


def test_the_variable_has_one_name() -> None:
    assert choosing.SESSION == ACCESS_VARIABLE


@pytest.mark.parametrize(
    "address", ["ssh://ann@login", "snapshot:/etc/passwd", "recorded:22.05", "slurmrestd+unix:///x"]
)
def test_a_session_opens_no_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    assert choosing.chosen(address) == address
    monkeypatch.setenv(ACCESS_VARIABLE, "admin")
    with pytest.raises(CockpitError, match="by their names"):
        choosing.chosen(address)
