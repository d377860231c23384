"""ApiVersions, v0 to v4: which requests this broker answers, straight from the registry.

An unknown version is answered in v0's form with UNSUPPORTED_VERSION and this API's own range, so that the client can
ask again. From v3 on a client says who it is; a name that is not a plain word is INVALID_REQUEST. v3 also
brings the features of the cluster; v4 differs from it only in that supported ones may begin at level 0, as all do.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ottla.api.call import Call
from ottla.api.registry import APIS, api
from ottla.api.services import Services
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FEATURES = {"group.version": 1, "transaction.version": 2}  # the level at which the cluster uses each
_FEATURES_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(ApiKey.API_VERSIONS)
def api_versions(services: Services, call: Call, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    if request is None:
        own = [entry for entry in _table() if entry.api_key == ApiKey.API_VERSIONS]
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        call.peer.client_software_name = name
        call.peer.client_software_version = version
    response = ApiVersionsResponse(api_keys=_table())
    if call.version >= _FEATURES_SINCE:
        response.finalized_features_epoch = services.metadata.image.revision
        response.finalized_features = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in FEATURES.items()
        ]
    if call.version > _FEATURES_SINCE:
        response.supported_features = [
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in FEATURES.items()
        ]
    return response


@lru_cache(maxsize=1)
def _table() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=entry.key, min_version=entry.min_version, max_version=entry.max_version)
        for entry in sorted(APIS.values())
    ]
