"""ApiVersions, API 18, versions 0 to 4. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ApiVersionsRequest(Message):
    API_KEY = 18
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 3
    __slots__ = ("client_software_name", "client_software_version")  # fmt: skip
    FIELDS = (
        Field("client_software_name", "string", since=3, default=""),
        Field("client_software_version", "string", since=3, default=""),
    )

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(Message):
    __slots__ = ("api_key", "max_version", "min_version")  # fmt: skip
    FIELDS = (
        Field("api_key", "int16", default=0),
        Field("min_version", "int16", default=0),
        Field("max_version", "int16", default=0),
    )

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Message):
    __slots__ = ("max_version", "min_version", "name")  # fmt: skip
    FIELDS = (
        Field("name", "string", since=3, default=""),
        Field("min_version", "int16", since=3, default=0),
        Field("max_version", "int16", since=3, default=0),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Message):
    __slots__ = ("max_version_level", "min_version_level", "name")  # fmt: skip
    FIELDS = (
        Field("name", "string", since=3, default=""),
        Field("max_version_level", "int16", since=3, default=0),
        Field("min_version_level", "int16", since=3, default=0),
    )

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Message):
    API_KEY = 18
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 3
    __slots__ = ("api_keys", "error_code", "finalized_features", "finalized_features_epoch",
        "supported_features", "throttle_time_ms", "zk_migration_ready")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("api_keys", "struct", array=True, of=ApiVersion),
        Field("throttle_time_ms", "int32", since=1, default=0),
        Field("supported_features", "struct", array=True, since=3, tag=0, of=SupportedFeatureKey),
        Field("finalized_features_epoch", "int64", since=3, tag=1, default=-1),
        Field("finalized_features", "struct", array=True, since=3, tag=2, of=FinalizedFeatureKey),
        Field("zk_migration_ready", "bool", since=3, tag=3, default=False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] | None = None,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | None = None,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | None = None,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is None else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = (
            [] if supported_features is None else supported_features
        )
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = (
            [] if finalized_features is None else finalized_features
        )
        self.zk_migration_ready = zk_migration_ready
