"""What texts may be that the kernel takes: paths, arguments; and how many of something."""

from __future__ import annotations

from cockpit.model.text import visible

PATH_BYTES = 4095
COMMAND_BYTES = 64 * 1024


def path_error(path: str) -> str | None:
    """A path on the machine that runs the job: absolute, without `.` and `..`; any character but NUL."""
    if error := text_error(path, PATH_BYTES):
        return error
    if not path.startswith("/"):
        return f'"{visible(path)}" is not absolute; write it from /'
    if path != "/" and not all(part not in {"", ".", ".."} for part in path[1:].split("/")):
        return f'"{visible(path)}" contains an empty part, "." or ".."; write it without'
    return None


def text_error(text: str, most_bytes: int, least: int = 1) -> str | None:
    """Text that the kernel takes as an argument: no NUL, and encodable."""
    if len(text) < least:
        return "is empty; give one"
    if "\0" in text:
        return f'"{visible(text)}" contains a NUL character; remove it'
    if (size := utf8_size(text)) > most_bytes:
        return f"has {size} bytes; use at most {most_bytes}"
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return f'"{visible(text)}" contains half of a surrogate pair; write whole characters'
    return None


def count_error(count: int, most: int, least: int = 0) -> str | None:
    return None if least <= count <= most else f"has {count} entries; give {least} to {most}"


def utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
