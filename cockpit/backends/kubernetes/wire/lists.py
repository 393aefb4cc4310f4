"""Whole lists of objects, read in pages whose bytes are decoded into structs of the needed fields."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from cockpit.backends.kubernetes.resources import Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.errors import Unreachable

T = TypeVar("T")

PAGE = 500
"""Objects in a page: 500 pods are decoded in 15 ms, so that no screen waits for a list."""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] | None = ()


class Listed(NamedTuple, Generic[T]):
    """A whole list, and the version from which its changes can be watched."""

    items: list[T]
    version: str


async def read_pages(
    api: Api,
    resource: Resource,
    decoder: msgspec.json.Decoder[Page[T]],
    namespace: str = "",
    labels: str = "",
    fields: str = "",
) -> AsyncIterator[Page[T]]:
    """Yield the pages of a list. `labels`, `fields`: selectors; empty: all objects.

    Raises `ApiError` with `is_expired` where the list takes longer than the server remembers its version.
    """
    after = ""
    while True:
        # No resourceVersion: with 0 the server ignores the limit and answers with everything at once.
        query = [("limit", str(PAGE))]
        query += [("continue", after)] if after else []
        query += [("labelSelector", labels)] if labels else []
        query += [("fieldSelector", fields)] if fields else []
        page = decode_answer(await api.get(resource.path(namespace), query), decoder, resource)
        yield page
        after = page.metadata.continue_
        if not after:
            return
        # The loop may have more to do than lists, such as to draw a screen.
        await asyncio.sleep(0)


async def read_list(
    api: Api,
    resource: Resource,
    decoder: msgspec.json.Decoder[Page[T]],
    namespace: str = "",
    labels: str = "",
    fields: str = "",
) -> Listed[T]:
    """Return a whole list. A list that expired while it was read is read once more."""
    for last in (False, True):
        items: list[T] = []
        try:
            async for page in read_pages(api, resource, decoder, namespace, labels, fields):
                items += page.items or ()
                version = page.metadata.resource_version
            return Listed(items, version)
        except ApiError as error:
            if last or not error.is_expired:
                raise
    raise AssertionError("the loop returns or raises")


def decode_answer(body: bytes, decoder: msgspec.json.Decoder[T], resource: Resource) -> T:
    """Return the decoded answer. Raises `Unreachable` for one that is cut off or is no such object."""
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise Unreachable(f"The API server's answer about {resource.shown} cannot be read: {error}.") from error
