"""Which client may do what, by its TLS certificate. It knows nothing of roles' primaries, pipelines, or how rights are written."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.p4runtime.errors import P4RuntimeError


@dataclass(frozen=True)
class ClientRights:
    """The rights of one client; it has no others than those named."""

    certificate: str
    """A subject alternative name (DNS, IP address or URI) of its certificate, or the common name."""
    devices: tuple[int, ...] | None = None
    """The devices that it may deal with; all of them if this is not given."""
    read: bool = False
    """Whether it may read entities and the pipeline."""
    roles: tuple[str, ...] = ()
    """The roles that it may open streams for and write as; ``""`` is the default role."""
    pipeline: bool = False
    """Whether it may set the pipeline, in one of its roles."""


@dataclass(frozen=True)
class Rights:
    """The rights of all clients. The first entry that fits a client's certificate counts; a client that none fits is refused."""

    clients: tuple[ClientRights, ...]


@dataclass(frozen=True)
class Client:
    """The caller and its rights; without rights it may do everything, as on an address of this machine."""

    name: str = ""
    rights: ClientRights | None = None

    def check_device(self, device_id: int) -> None:
        """Raise PERMISSION_DENIED unless the client may access the device."""
        if self.rights and self.rights.devices is not None and device_id not in self.rights.devices:
            raise self._denied(f"deal with device {device_id}")

    def check_read(self) -> None:
        """Raise PERMISSION_DENIED unless the client may read."""
        if self.rights and not self.rights.read:
            raise self._denied("read")

    def check_roles(self) -> None:
        """Raise PERMISSION_DENIED unless the client may write as at least one role."""
        if self.rights and not self.rights.roles:
            raise self._denied("write")

    def check_role(self, role: str) -> None:
        """Raise PERMISSION_DENIED unless the client may write as ``role``; "" is the default role."""
        if self.rights and role not in self.rights.roles:
            raise self._denied(f"take the role '{role}'" if role else "take the default role")

    def check_pipeline(self) -> None:
        """Raise PERMISSION_DENIED unless the client may set the pipeline."""
        if self.rights and not self.rights.pipeline:
            raise self._denied("set the pipeline")

    def _denied(self, what: str) -> P4RuntimeError:
        return P4RuntimeError("PERMISSION_DENIED", f"the client with certificate '{self.name}' may not {what}")


class Trust:
    """Identifies the clients of a server that demands certificates, from what gRPC says of a call.

    ``own_certificate``: the server's, in PEM. A caller that shows that one has taken it from the server, and is no client.
    """

    def __init__(self, own_certificate: bytes, rights: Rights | None) -> None:
        self._own = _der(own_certificate)
        self._rights = rights

    def client(self, authentication: Mapping[str, Sequence[bytes]]) -> Client:
        """Return the client of a call from its ``ServicerContext.auth_context()``.

        Raises UNAUTHENTICATED for the server's own certificate, PERMISSION_DENIED for a client that the rights do not name.
        """
        shown = [_der(pem) for pem in authentication.get("x509_pem_cert", ())]
        if not shown or self._own in shown:
            raise P4RuntimeError("UNAUTHENTICATED", "the server's own certificate is not a client's")
        alternatives = _texts(authentication.get("x509_subject_alternative_name", ()))
        common_names = _texts(authentication.get("x509_common_name", ()))
        names = [*alternatives, *common_names]
        if self._rights is None:
            return Client(names[0] if names else "")
        for rights in self._rights.clients:
            if rights.certificate in names:
                return Client(rights.certificate, rights)
        known_as = "', '".join(names)
        raise P4RuntimeError("PERMISSION_DENIED", f"the file of rights names no client '{known_as}'")


def _texts(values: Sequence[bytes]) -> list[str]:
    return [value.decode(errors="replace") for value in values]


def _der(pem: bytes) -> bytes:
    """Return the first certificate of a PEM file in DER form. In the server's file this is the server's own."""
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    first = pem[pem.index(begin) : pem.index(end) + len(end)]
    return ssl.PEM_cert_to_DER_cert(first.decode())
