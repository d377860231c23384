"""AlterUserScramCredentials, API 51, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ScramCredentialDeletion(Message):
    __slots__ = ("mechanism", "name")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("mechanism", "int8", default=0),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Message):
    __slots__ = ("iterations", "mechanism", "name", "salt", "salted_password")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("mechanism", "int8", default=0),
        Field("iterations", "int32", default=0),
        Field("salt", "bytes", default=b""),
        Field("salted_password", "bytes", default=b""),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Message):
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("deletions", "upsertions")  # fmt: skip
    FIELDS = (
        Field("deletions", "struct", array=True, of=ScramCredentialDeletion),
        Field("upsertions", "struct", array=True, of=ScramCredentialUpsertion),
    )

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] | None = None,
        upsertions: list[ScramCredentialUpsertion] | None = None,
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is None else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is None else upsertions


class AlterUserScramCredentialsResult(Message):
    __slots__ = ("error_code", "error_message", "user")  # fmt: skip
    FIELDS = (
        Field("user", "string", default=""),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Message):
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("results", "struct", array=True, of=AlterUserScramCredentialsResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is None else results
