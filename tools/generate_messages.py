"""Write src/ottla/protocol/messages: one module per API, from the message definitions that kio carries.

kio has a dataclass per message and version. Here all versions of a message become one class, each field with the
versions that have it. Run by `make messages`; the result is committed, and a test checks that it is what this tool
writes. kio is needed only here and in tests.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import subprocess
import sys
import textwrap
import uuid
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from kio.schema.index import api_key_map
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, is_optional

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/ottla/protocol/messages"

# The APIs that something in src uses, in the versions of Kafka 4.2. kio has more of both.
# fmt: off
VERSIONS: dict[int, tuple[int, int]] = {
    0: (0, 13), 1: (0, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4),
    13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2),
    22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 32: (1, 4), 33: (0, 2),
    34: (1, 2), 35: (1, 4), 36: (0, 2), 37: (0, 3), 42: (0, 2), 44: (0, 1), 47: (0, 0), 60: (0, 2), 61: (0, 0),
    65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1), 75: (0, 0),
}
# kio begins where Kafka 4 begins. In older versions of these APIs every field of kio's oldest version is there too,
# except these, which begin later.
OLDER: dict[int, dict[str, int]] = {
    0: {"ProduceRequest.transactional_id": 3, "ProduceResponse.throttle_time_ms": 1,
        "PartitionProduceResponse.log_append_time_ms": 2},
    1: {"FetchRequest.max_bytes": 3, "FetchRequest.isolation_level": 4, "FetchResponse.throttle_time_ms": 1,
        "PartitionData.last_stable_offset": 4, "PartitionData.aborted_transactions": 4},
}
# fmt: on

WIRE_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
PYTHON_TYPES = {"string": "str", "bytes": "bytes", "bool": "bool", "float64": "float", "uuid": "UUID"}
IMPLICIT = {"string": "", "bytes": b"", "bool": False, "float64": 0.0, "uuid": None, "records": None}


@dataclass
class FieldModel:
    """One field of a message in all its versions."""

    name: str
    type: str  # a wire type, or the name of a class
    is_array: bool
    tag: int | None
    default: Any
    versions: list[int] = field(default_factory=list)
    nullable: list[int] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        return self.type[0].islower()

    @property
    def may_be_none(self) -> bool:
        """Null on the wire, an id of zeros, or a tagged part that is not there."""
        is_tagged_part = self.tag is not None and not self.is_plain and not self.is_array
        return bool(self.nullable) or self.type in ("uuid", "records") or is_tagged_part


@dataclass(eq=False)
class ClassModel:
    """One message, or a part of one, in all its versions."""

    name: str
    fields: list[FieldModel] = field(default_factory=list)


@dataclass
class MessageModel:
    """A request or a response with the classes of its parts."""

    name: str
    flexible_since: int
    classes: dict[str, ClassModel] = field(default_factory=dict)

    def parts_first(self, name: str) -> list[ClassModel]:
        """The class of that name after all that it contains."""
        model = self.classes[name]
        parts = [p for item in model.fields if not item.is_plain for p in self.parts_first(item.type)]
        return [*dict.fromkeys(parts), model]


def _plain(value: Any) -> Any:
    """A default as a plain value: milliseconds, numbers, None for the zero id and for an all-default part."""
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, uuid.UUID):
        return None
    if isinstance(value, bool | IntEnum):
        return bool(value) if isinstance(value, bool) else int(value)
    if isinstance(value, tuple):
        assert not value
        return []
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        assert value == kind(), "a part is left out when it is all defaults"
        return None
    plain = next((kind for kind in (int, float, str, bytes) if isinstance(value, kind)), None)
    return plain(value) if plain else None


def _field(source: dataclasses.Field[Any]) -> tuple[FieldModel, bool, Any]:
    """A field of one version, whether it may be null there, and the class of its parts."""
    kind = classify_field(source)
    part = kind.type_ if isinstance(kind, EntityField | EntityTupleField) else None
    kafka_type = source.metadata.get("kafka_type", "")
    name = source.name
    if kafka_type.startswith(("timedelta", "datetime")):
        name += "_ms"  # Kafka's own name; kio drops the unit because its types carry it
    wire_type = part.__name__ if part else WIRE_TYPES.get(kafka_type, kafka_type)
    optional = is_optional(source) and wire_type != "uuid" and not kafka_type.startswith("datetime")
    if source.default is not dataclasses.MISSING:
        default = _plain(source.default)
        if default is None and kafka_type.startswith("datetime"):
            default = -1
    elif kind.is_array:
        default = []
    else:
        default = None if part else IMPLICIT.get(wire_type, 0)
    tag = source.metadata.get("tag")
    return FieldModel(name, wire_type, kind.is_array, tag, default), optional, part


def _merge(message: MessageModel, source: type, version: int) -> None:
    """Add one version of a class, its parts first."""
    found = []
    for each in dataclasses.fields(source):
        model, optional, part = _field(each)
        if part:
            _merge(message, part, version)
        found.append((model, optional))
    target = message.classes.setdefault(source.__name__, ClassModel(source.__name__))
    position = 0
    for model, optional in found:
        known = next((i for i, f in enumerate(target.fields) if f.name == model.name), None)
        if known is None:
            target.fields.insert(position, model)
            position += 1
        else:
            old = target.fields[known]
            same = (old.type, old.is_array, old.tag) == (model.type, model.is_array, model.tag)
            assert same, f"{source.__name__}.{model.name} changes its type"
            assert known >= position, f"{source.__name__}.{model.name} changes its place"
            model, position = old, known + 1
        if version not in model.versions:  # one class may be a part of two others
            model.versions.append(version)
            if optional:
                model.nullable.append(version)


def _message(api_key: int, kind: str) -> MessageModel:
    api = api_key_map[api_key]
    low, high = VERSIONS[api_key]
    flexible_since = high + 1
    message = MessageModel("", flexible_since)
    for version in range(high, low - 1, -1):
        try:
            module = importlib.import_module(f"kio.schema.{api}.v{version}.{kind}")
        except ModuleNotFoundError:
            assert api_key in OLDER
            _add_older(message, api_key, version)
            continue
        name = _camel(api) + kind.capitalize()
        source = getattr(module, name)
        message.name = name
        if source.__flexible__:
            message.flexible_since = version
        _merge(message, source, version)
    for each in message.classes.values():
        for item in each.fields:
            item.versions.sort()
            item.nullable.sort()
    return message


def _add_older(message: MessageModel, api_key: int, version: int) -> None:
    for part in message.classes.values():
        for item in part.fields:
            if version + 1 in item.versions and version >= OLDER[api_key].get(f"{part.name}.{item.name}", 0):
                item.versions.append(version)
                if version + 1 in item.nullable:
                    item.nullable.append(version)


def _camel(snake: str) -> str:
    return "".join(word.capitalize() for word in snake.split("_"))


def _contiguous(versions: list[int]) -> tuple[int, int]:
    assert versions == list(range(versions[0], versions[-1] + 1))
    return versions[0], versions[-1]


def _python_type(item: FieldModel, is_request: bool) -> str:
    if item.type == "records":
        # A broker reads the records of requests and writes those of responses.
        return "memoryview | None" if is_request else "Records | None"
    python = PYTHON_TYPES.get(item.type) or ("int" if item.is_plain else item.type)
    if item.is_array:
        python = f"list[{python}]"
    return python + (" | None" if item.may_be_none else "")


def _literal(value: Any) -> str:
    return repr(value).replace("'", '"')


def _table_row(item: FieldModel, low: int, high: int) -> str:
    words = [_literal(item.name), _literal(item.type) if item.is_plain else '"struct"']
    if item.is_array:
        words.append("array=True")
    first, last = _contiguous(item.versions)
    if first > low:
        words.append(f"since={first}")
    if last < high:
        words.append(f"until={last}")
    if item.nullable:
        begin, end = _contiguous(item.nullable)
        assert end == last
        words.append(f"nullable_since={begin}")
    if item.tag is not None:
        words.append(f"tag={item.tag}")
    if not item.is_array and item.default is not None:
        words.append(f"default={_literal(item.default)}")
    if not item.is_plain:
        words.append(f"of={item.type}")
    return f"Field({', '.join(words)}),"


def _parameter(item: FieldModel, python: str) -> str:
    if item.is_array:
        return f"{item.name}: {python.removesuffix(' | None')} | None = None,"
    if item.default is None and not item.may_be_none:
        return f"{item.name}: {python},"
    return f"{item.name}: {python} = {_literal(item.default)},"


def _assignment(item: FieldModel, python: str) -> str:
    if item.is_array and not item.may_be_none:
        return f"self.{item.name}: {python} = [] if {item.name} is None else {item.name}"
    return f"self.{item.name} = {item.name}"


def _class_source(model: ClassModel, head: list[str], is_request: bool, span: tuple[int, int]) -> str:
    slots = ", ".join(f'"{name}"' for name in sorted(item.name for item in model.fields))
    slots += "," if len(model.fields) == 1 else ""
    body = [*head, *textwrap.wrap(f"__slots__ = ({slots})", 90, subsequent_indent="    ")]
    body[-1] += "  # fmt: skip"
    if model.fields:
        body += ["FIELDS = (", *(f"    {_table_row(item, *span)}" for item in model.fields), ")"]
        types = {item.name: _python_type(item, is_request) for item in model.fields}
        body += ["", "def __init__(", "    self,", "    *,"]
        body += [f"    {_parameter(item, types[item.name])}" for item in model.fields]
        body += [") -> None:"]
        body += [f"    {_assignment(item, types[item.name])}" for item in model.fields]
    return "\n".join([f"class {model.name}(Message):", *(f"    {line}" if line else "" for line in body)])


def _module_source(api_key: int) -> tuple[str, MessageModel]:
    low, high = span = VERSIONS[api_key]
    request, response = _message(api_key, "request"), _message(api_key, "response")
    assert request.flexible_since == response.flexible_since
    blocks: dict[str, str] = {}
    for message in (request, response):
        is_request = message is request
        for model in message.parts_first(message.name):
            head = []
            if model.name == message.name:
                head = [
                    f"API_KEY = {api_key}",
                    f"VERSIONS = {span}",
                    f"FLEXIBLE_SINCE = {message.flexible_since}",
                ]
            source = _class_source(model, head, is_request, span)
            assert blocks.get(model.name, source) == source, (
                f"{model.name} is two things: one needs another name"
            )
            blocks[model.name] = source
    body = "\n\n\n".join(blocks.values())
    title = request.name.removesuffix("Request")
    doc = f"{title}, API {api_key}, versions {low} to {high}. Written by tools/generate_messages.py; not to be edited."
    imports = "Field, Message" + (", Records" if "Records |" in body else "")
    uuid_import = "from uuid import UUID\n\n" if "UUID" in body else ""
    lines = f'"""{doc}"""\n\nfrom __future__ import annotations\n\n'
    return f"{lines}{uuid_import}from ottla.protocol.message import {imports}\n\n\n{body}\n", request


def generate(target: Path) -> None:
    """Write every module and the index, formatted as the rest of the repository is."""
    rows = []
    for api_key in VERSIONS:
        source, request = _module_source(api_key)
        module = api_key_map[api_key]
        (target / f"{module}.py").write_text(source)
        low, high = VERSIONS[api_key]
        name = request.name.removesuffix("Request")
        rows.append(f'    Api({api_key}, "{name}", "{module}", {low}, {high}, {request.flexible_since}),')
    index = INDEX_HEAD + "\n".join(rows) + "\n)}\n# fmt: on\n"
    (target / "index.py").write_text(index)
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "--config", "pyproject.toml", str(target)],
                   check=True, cwd=ROOT)  # fmt: skip


INDEX_HEAD = '''"""Which messages there are. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from typing import NamedTuple


class Api(NamedTuple):
    """Where the two messages of an API are found, their versions, and the first with the flexible encoding."""

    key: int
    name: str
    module: str
    min_version: int
    max_version: int
    flexible_since: int


# fmt: off
APIS: dict[int, Api] = {api.key: api for api in (
'''

if __name__ == "__main__":
    generate(TARGET)
