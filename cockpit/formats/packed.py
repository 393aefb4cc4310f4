"""Files that may be packed: logs and traces are published as .gz."""

from __future__ import annotations

from cockpit.errors import SpecErrors

_GZIP = b"\x1f\x8b"


def unpack(source: str, data: bytes) -> bytes:
    """Return the data, unpacked where gzip packed it. Raises `SpecErrors` when it is damaged."""
    if not data.startswith(_GZIP):
        return data
    # Late: most files are not packed.
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        message = f"{source}: cannot be unpacked ({error}); check it with `gzip -t`, and fetch it again."
        raise SpecErrors([message]) from error
