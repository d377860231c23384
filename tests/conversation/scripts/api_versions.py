"""ApiVersions, and requests that no broker knows."""

from __future__ import annotations

from struct import pack

from ottla.protocol.messages.api_versions import ApiVersionsRequest
from tests.conversation.talk import Talk, versions

KEY = ApiVersionsRequest.API_KEY
_NAMES = {
    "no name": ("", "1.0"),
    "no version": ("client", ""),
    "a name that begins with a dash": ("-client", "1.0"),
    "a version that ends with a dot": ("client", "1."),
    "a name with a space": ("a client", "1.0"),
    "one letter": ("c", "1"),
    "dots and dashes": ("my-client.x", "1.0-rc.2"),
}


def script(talk: Talk) -> None:
    for version in versions(KEY):
        known = ApiVersionsRequest(client_software_name="client", client_software_version="1.0")
        talk.ask("what is served", version, known)
    talk.ask("without a client id", 2, ApiVersionsRequest(), client_id=None)
    for version in (3, 4):
        for step, (name, software) in _NAMES.items():
            request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
            talk.ask(step, version, request, only=lambda response: response.api_keys.clear())
    talk.raw("ApiVersions v99", _frame(KEY, 99, b"\x00"))
    talk.raw("ApiVersions v99 and a body that nobody knows", _frame(KEY, 99, b"\x00\x01\x02\x03"))
    talk.raw("ApiVersions v99 whose header has no tags", _frame(KEY, 99))
    talk.raw("ApiVersions v-1", _frame(KEY, -1))
    talk.raw("ApiVersions v0 with a body", _frame(KEY, 0, b"\x01\x02\x03"))
    talk.raw("ApiVersions v3 whose body is cut short", _frame(KEY, 3, b"\x00\x05c"))
    talk.raw("Produce v99", _frame(0, 99))
    talk.raw("Fetch v-1", _frame(1, -1))
    talk.raw("Metadata v99", _frame(3, 99))
    talk.raw("API 999", _frame(999, 0))
    talk.raw("API -1", _frame(-1, 0))
    talk.raw("a frame without a whole header", b"\x00\x12\x00")
    talk.raw("an empty frame", b"")
    talk.raw("Produce v9 whose body is cut short", _frame(0, 9, b"\x00\x01"))
    talk.raw("Metadata v1 that claims a billion topics", _frame(3, 1, pack(">i", 1_000_000_000)))


def _frame(key: int, version: int, body: bytes = b"") -> bytes:
    return pack(">hhih", key, version, 7, 6) + b"client" + body
