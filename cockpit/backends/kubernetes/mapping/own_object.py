"""A cluster's own object of a job, as it is shown to a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "(not shown)"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation with a copy of the whole manifest, environment included."""


def without_environment(value: Any) -> Any:  # noqa: ANN401 - any part of an object
    """Return the object without the values of its containers' environment variables, which may be secrets, and
    without the server's list of who changed which field."""
    if isinstance(value, Mapping):
        return {
            key: list(map(_named, each)) if key == "env" and isinstance(each, list) else without_environment(each)
            for key, each in value.items()
            if key not in ("managedFields", _APPLIED)
        }
    return [without_environment(each) for each in value] if isinstance(value, list) else value


def _named(variable: Any) -> Any:  # noqa: ANN401 - an entry of any object
    """Return a variable with its name and, in place of a value, a note; one that refers to a source keeps it."""
    return {**variable, "value": HIDDEN} if isinstance(variable, Mapping) and "value" in variable else variable
