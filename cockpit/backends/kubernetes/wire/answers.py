"""The answers of an API server that are no success, as errors with the server's own words."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from cockpit.errors import CockpitError
from cockpit.model.text import visible

_LONGEST = 600
"""Most characters of a server's message that are shown: validation errors may repeat a whole object."""


class StatusCause(msgspec.Struct, frozen=True):
    """One field that is wrong, or the exit code of a command."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """Details of a status."""

    name: str = ""
    kind: str = ""
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """The object that an API server answers instead of the one that was requested (meta/v1 Status)."""

    message: str = ""
    reason: str = ""
    code: int = 0
    status: str = ""
    details: StatusDetails | None = None


_DECODER = msgspec.json.Decoder(Status)
_STRICT = "strict decoding error"
"""How a server begins what it says of unknown fields (`fieldValidation=Strict`)."""


class ApiError(CockpitError):
    """The API server answered with an error."""

    def __init__(self, code: int, reason: str, message: str, details: StatusDetails | None = None) -> None:
        """`reason`: the server's word for the error, such as `Forbidden` or `Expired`; `message`: its sentence."""
        self.code, self.reason, self.details = code, reason, details
        # Before this, an answer to a patch repeats the whole object.
        start = max(0, message.find(_STRICT)) if len(message) > _LONGEST else 0
        self.message = visible(message[start:], _LONGEST)
        super().__init__(f"The API server refuses this ({code} {reason}): {self.message}")

    @property
    def is_forbidden(self) -> bool:
        return self.code == HTTPStatus.FORBIDDEN

    @property
    def is_absent(self) -> bool:
        """Whether the object, or the whole kind of object, does not exist there."""
        return self.code == HTTPStatus.NOT_FOUND

    @property
    def lacks_kind(self) -> bool:
        """Whether the server does not serve the kind of object at all: of a missing object it says the name."""
        return self.is_absent and not (self.details is not None and self.details.name)

    @property
    def is_expired(self) -> bool:
        """Whether a list or watch has to begin anew, because its version is too old."""
        return self.code == HTTPStatus.GONE


def error_of(code: int, body: bytes) -> ApiError:
    """Return the error of an answer with this HTTP status."""
    try:
        status = _DECODER.decode(body)
    except msgspec.DecodeError:
        # A proxy in between, for example, answers with a page of HTML.
        status = Status(message=body.decode(errors="replace").strip() or _phrase(code))
    return ApiError(code, status.reason or _phrase(code), status.message or _phrase(code), status.details)


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "unknown status"
