"""The process of the embedded engine, with the links to its members where it is a fleet:
`python -m cockpit.clusters.engine_process [--system]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cockpit.backends.local.daemon import main

if TYPE_CHECKING:
    from cockpit.backends.base import LiveBackend
    from cockpit.backends.fleet.link import BackendLink


def link_to(name: str) -> BackendLink:
    """Return the link to a cluster of config.toml; it is opened with the first order."""
    from cockpit.backends.fleet.link import BackendLink
    from cockpit.present.reasons import reason_sentence
    from cockpit.runtime.clock import SystemClock

    now = SystemClock().now

    async def opened_cluster() -> LiveBackend:
        from cockpit.clusters.opening import opened

        return (await opened(name))[0]

    return BackendLink(opened_cluster, lambda reason: reason_sentence(reason, now(), None))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], link_to))
