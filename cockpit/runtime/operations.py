"""The operations of the socket: what the engine does for each that `protocol.operations` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.model.operations import Style
from cockpit.protocol.operations import SHELL, TABLE
from cockpit.runtime import acting, fleet_table, predicting, priorities, reading, staging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    Function = Callable[..., Coroutine[Any, Any, Any] | AsyncIterator[Any]]

_MODULES = (reading, acting, predicting, staging, priorities, fleet_table)


def _function(name: str) -> Function:
    """Return the function of an operation: the one that has its name in the module that defines it."""
    for module in _MODULES:
        function: Function | None = vars(module).get(name)
        if getattr(function, "__module__", "") == module.__name__ and function is not None:
            return function
    raise LookupError(f"no function carries out {name}")


OPERATIONS: dict[str, tuple[type[msgspec.Struct], Function]] = {
    name: (row.args(), _function(name)) for name, row in TABLE.items() if name != SHELL
}
"""The type of the arguments and the function of all operations but `shell`, which the connection handles itself because
its answer carries file descriptors."""
ONCE = frozenset(name for name, row in TABLE.items() if row.style is Style.CHANGES)
"""Operations that happen once per request id. Reading needs no id, and a repeated `shell` or `stop` happens again."""
WAITING = frozenset(name for name, row in TABLE.items() if row.style in {Style.WAITS, Style.SPECIAL})
"""Operations that may take long and have small answers: the connection answers other requests meanwhile."""
