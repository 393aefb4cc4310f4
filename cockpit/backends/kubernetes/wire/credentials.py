"""The address and the credentials of a context, as the Kubernetes client reads them from the kubeconfig.

Exec plugins, token files and certificates are the client's matter. Cockpit reads them anew when they expire: the client
itself does not renew what an exec plugin gave it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.backends.kubernetes.wire.kubeconfig import context_alone
from cockpit.errors import CockpitError, Unreachable
from cockpit.model.ids import Millis
from cockpit.model.text import visible

if TYPE_CHECKING:
    from types import ModuleType

EARLY_MS = 60_000
"""How long before their end credentials of an exec plugin are renewed."""
_TOKEN = "BearerToken"  # noqa: S105 - the client's name of the header, not a secret


class Credentials(NamedTuple):
    """What a connection is made of, read from the kubeconfig at one moment."""

    configuration: Any
    """`kubernetes.aio.client.Configuration`: address, certificates and proxy."""
    authorization: str
    """The value of the HTTP header; empty: the certificate says who the user is."""
    expires_at: Millis | None
    """When an exec plugin says that they end; None: unknown."""

    def must_be_renewed(self, now: Millis) -> bool:
        return self.expires_at is not None and now >= self.expires_at - EARLY_MS

    def same_connection(self, other: Credentials) -> bool:
        """Return whether a connection made with the others serves these, too: only the header differs."""
        names = ("host", "ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "tls_server_name", "proxy")
        return all(getattr(self.configuration, name) == getattr(other.configuration, name) for name in names)


class _LastMessage(logging.Handler):
    """Keeps what the client logs. It reports a failed exec plugin in its log alone, and continues without a token."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.message = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.message = record.getMessage()


async def client_modules() -> tuple[ModuleType, ModuleType]:
    """Return `kubernetes.aio.config` and `kubernetes.aio.client`.

    Imported in a thread, since that takes half a second, during which a screen must be drawn.
    """

    def both() -> tuple[ModuleType, ModuleType]:
        return importlib.import_module("kubernetes.aio.config"), importlib.import_module("kubernetes.aio.client")

    return await asyncio.to_thread(both)


async def read_credentials(context: str, files: tuple[str, ...]) -> Credentials:
    """Read the context and run its exec plugin, if it has one. Raises `Unreachable` with the reason."""
    try:
        alone = context_alone(context, files)
    except CockpitError as error:
        raise Unreachable(str(error)) from error
    config, client = await client_modules()
    logger, said = logging.getLogger("kubernetes.aio.config.kube_config"), _LastMessage()
    # Without a handler Python writes the message to stderr, which is the screen.
    logger.addHandler(said)
    logger.propagate = False
    configuration = client.Configuration()
    try:
        loader = await config.load_kube_config_from_dict(alone, context, configuration)
    # The client raises TypeError, KeyError and others of its own for files that lack something.
    except Exception as error:
        # What the client repeats of the file in braces may be a secret.
        text = visible(str(error).partition("{")[0], 300) or type(error).__name__
        raise Unreachable(f"The context {context!r} of the kubeconfig cannot be used: {text}") from error
    finally:
        logger.removeHandler(said)
    if said.message:
        raise Unreachable(
            f"The context {context!r} of the kubeconfig gives no credentials: {visible(said.message, 300)}"
        )
    expires_at = millis(getattr(loader, "exec_plugin_expiry", None))
    # A token's file usually ends with a line break, which no header may have.
    return Credentials(configuration, configuration.api_key.get(_TOKEN, "").strip(), expires_at)
