"""How values and bytes are written as JSON: compact, in UTF-8, and base64 for bytes that are not UTF-8."""

from __future__ import annotations

import base64
import json

to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
quote = json.encoder.encode_basestring


def utf8_or_base64(data: bytes | None) -> str | dict[str, str] | None:
    """What stands for bytes in JSON: text, `{"base64": ...}` for what is not UTF-8, or null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
