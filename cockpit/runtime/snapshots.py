"""The socket's operation that returns a snapshot of the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.formats.snapshotfile import Snapshot, without_secrets
from cockpit.protocol.pages import PIECE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext


def snapshot_of(engine: Engine) -> Snapshot:
    """Return the cluster's current state, without secrets."""
    host = engine.host
    return Snapshot(cluster=engine.cluster, at=host.clock.now(), state=without_secrets(host.machine.state))


async def snapshot(engine: Engine, _context: RequestContext, _args: messages.NoArgs) -> AsyncIterator[bytes]:
    """Return the encoded snapshot, in pieces that fit a frame."""
    encoded = msgspec.msgpack.encode(snapshot_of(engine))
    for start in range(0, len(encoded), PIECE_BYTES):
        yield encoded[start : start + PIECE_BYTES]
