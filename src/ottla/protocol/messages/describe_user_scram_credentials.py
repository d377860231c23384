"""DescribeUserScramCredentials, API 50, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class UserName(Message):
    __slots__ = ("name",)  # fmt: skip
    FIELDS = (Field("name", "string", default=""),)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Message):
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("users",)  # fmt: skip
    FIELDS = (Field("users", "struct", array=True, nullable_since=0, of=UserName),)

    def __init__(
        self,
        *,
        users: list[UserName] | None = None,
    ) -> None:
        self.users = users


class CredentialInfo(Message):
    __slots__ = ("iterations", "mechanism")  # fmt: skip
    FIELDS = (
        Field("mechanism", "int8", default=0),
        Field("iterations", "int32", default=0),
    )

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Message):
    __slots__ = ("credential_infos", "error_code", "error_message", "user")  # fmt: skip
    FIELDS = (
        Field("user", "string", default=""),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("credential_infos", "struct", array=True, of=CredentialInfo),
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] | None = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is None else credential_infos


class DescribeUserScramCredentialsResponse(Message):
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("error_code", "error_message", "results", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0, default=""),
        Field("results", "struct", array=True, of=DescribeUserScramCredentialsResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is None else results
