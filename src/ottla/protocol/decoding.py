"""Compiles the reader of one message in one version to Python source.

The whole message is one function: neighbouring fields of a fixed size, and the first byte of the length or count after
them, are one `struct` call; objects are made without `__init__`; arrays are loops in place. Nothing is allocated
because a length says so: an array's count is held against the bytes that are left, and all elements of a message
against one limit. In that limit 256 bytes of text count as an element too: text may take four times its bytes in
memory. Unknown tags are skipped. Bytes behind the message are ignored, as Kafka does.

The same reader can be had as a generator, which stops after each few hundred elements: a message of very many is then
read a little at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import Any

from ottla.names import Bytes
from ottla.protocol.message import Field, Message
from ottla.protocol.wire import (
    FEW,
    FORMATS,
    MAX_ELEMENTS,
    MAX_STRING_BYTES,
    SIZES,
    SLICE,
    DecodeError,
    TooManyElementsError,
    fields_of,
    is_nullable,
    read_id,
    read_varint,
    skip_tags,
)

Decode = Callable[..., Any]  # buffer, position, and how many elements there may be, if not as many as ever
DecodeSlowly = Callable[[Bytes, int], Generator[None, None, tuple[Any, int]]]  # with the number of elements

_TEMPLATE = """\
def decode(buffer, position, room={room}):
    end = len(buffer)
    try:
{body}
    except (IndexError, StructError, ValueError, OverflowError) as error:
        raise DecodeError(f"{name}: {{error}}") from error
    return {result}
"""


def compile_decoder(message_class: type[Message], version: int) -> Decode:
    """The function that reads this version of a message from a buffer, beginning at a position."""
    decode: Decode = _compiled(_DecoderSource(message_class, version, slowly=False))
    return decode


def compile_slow_decoder(message_class: type[Message], version: int) -> DecodeSlowly:
    """The same as a generator that stops now and then; it returns the message and how many elements it has."""
    decode: DecodeSlowly = _compiled(_DecoderSource(message_class, version, slowly=True))
    return decode


def _compiled(source: _DecoderSource) -> Any:
    names = source.names
    exec(source.text(), names)
    return names["decode"]


class _DecoderSource:
    def __init__(self, message_class: type[Message], version: int, slowly: bool) -> None:
        self._slowly = slowly
        self._message_class = message_class
        self._version = version
        self._is_flexible = version >= message_class.FLEXIBLE_SINCE
        self._title = f"{message_class.__name__} v{version}"
        self._lines: list[str] = []
        self._indent = 2
        self._count = 0
        # What one `struct` call will read: formats, and what each value is assigned to.
        self._formats: list[str] = []
        self._targets: list[str] = []
        self.names: dict[str, Any] = {
            "DecodeError": DecodeError,
            "StructError": struct_error,
            "TooManyElementsError": TooManyElementsError,
            "new": object.__new__,
            "read_id": read_id,
            "read_varint": read_varint,
            "skip_tags": skip_tags,
            "unpack_from": unpack_from,
        }

    def text(self) -> str:
        if self._slowly:
            self._line("count = 0")
            self._line(f"left = {SLICE}")
            self._line("if end < 0: yield")  # a generator, also if there is no array
        self._line("view = buffer if type(buffer) is memoryview else memoryview(buffer)")
        result = self._struct(self._message_class)
        if self._slowly:
            result = f"{result}, count"
        body = "\n".join(self._lines)
        return _TEMPLATE.format(room=MAX_ELEMENTS, body=body, name=self._title, result=result)

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _unique(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _fail(self, field: str, what: str) -> str:
        return f'raise DecodeError("{self._title}: {field} {what}")'

    def _too_many(self, what: str) -> str:
        return f'raise TooManyElementsError("{self._title}: {what}")'

    # -- values of a fixed size, gathered until something else comes

    def _gather(self, format_: str, target: str) -> None:
        self._formats.append(format_)
        self._targets.append(target)

    def _flush(self) -> None:
        formats, targets = self._formats, self._targets
        self._formats, self._targets = [], []
        if not formats:
            return
        if formats == ["B"]:
            self._line(f"{targets[0]} = buffer[position]")
            self._line("position += 1")
            return
        layout = Struct(">" + "".join(formats))
        name = "read_" + "".join(formats).replace("?", "o")
        self.names[name] = layout.unpack_from
        self._line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {name}(buffer, position)")
        self._line(f"position += {layout.size}")

    def _length(self, wide: str) -> str:
        """Read a length or count: -1 is null. Returns the variable that has it."""
        n = self._unique("n")
        self._gather("B" if self._is_flexible else wide, n)
        self._flush()
        if self._is_flexible:
            self._line(f"if {n} > 127: {n}, position = read_varint(buffer, position, {n})")
            self._line(f"{n} -= 1")
        return n

    # -- structures

    def _struct(self, message_class: type[Message]) -> str:
        """Read all fields of a part into a new object; returns the variable that has it."""
        instance = self._unique("o")
        self.names[f"class_{message_class.__name__}"] = message_class
        self._flush()
        self._line(f"{instance} = new(class_{message_class.__name__})")
        present = fields_of(message_class, self._version)
        tagged = [f for f in present if f.tag is not None]
        self._defaults(instance, [f for f in message_class.FIELDS if f not in present or f.tag is not None])
        ids = []
        for field in present:
            if field.tag is None:
                target = f"{instance}.{field.name}"
                self._field(field, target)
                if field.kind == "uuid" and not field.array:
                    ids.append(target)
        if self._is_flexible:
            tags = self._unique("t")
            self._gather("B", tags)
            self._flush()
            self._tags(tags, instance, tagged)
        self._flush()
        for target in ids:
            self._line(f"{target} = read_id({target})")
        return instance

    def _defaults(self, instance: str, fields: list[Field]) -> None:
        same: dict[str, list[str]] = {}
        for field in fields:
            is_list = field.array and field.nullable_since is None
            if is_list:
                self._line(f"{instance}.{field.name} = []")
            else:
                same.setdefault(repr(field.default), []).append(f"{instance}.{field.name}")
        for value, targets in same.items():
            self._line(f"{' = '.join(targets)} = {value}")

    def _tags(self, count: str, instance: str, tagged: list[Field]) -> None:
        if not tagged:
            self._line(f"if {count}: position, room = skip_tags(buffer, position, {count}, room)")
            if self._slowly:
                self._line(f"left -= {count}")
            return
        self._line(f"if {count}:")
        self._indent += 1
        self._line(f"if {count} > 127: {count}, position = read_varint(buffer, position, {count})")
        self._charge(count)
        self._line(f"for _ in range({count}):")
        self._indent += 1
        tag, size, stop = self._unique("tag"), self._unique("size"), self._unique("stop")
        for name in (tag, size):
            self._line(f"{name} = buffer[position]")
            self._line("position += 1")
            self._line(f"if {name} > 127: {name}, position = read_varint(buffer, position, {name})")
        self._line(f"{stop} = position + {size}")
        self._line(f"if {stop} > end: {self._fail('tags', 'are longer than what is left')}")
        word = "if"
        for field in tagged:
            self._line(f"{word} {tag} == {field.tag}:")
            self._indent += 1
            target = f"{instance}.{field.name}"
            self._field(field, target)
            self._flush()
            if field.kind == "uuid":
                self._line(f"{target} = read_id({target})")
            self._line(f"if position != {stop}: {self._fail(field.name, 'is not as long as its tag says')}")
            self._indent -= 1
            word = "elif"
        self._line(f"else: position = {stop}")
        self._indent -= 2

    def _charge(self, count: str) -> None:
        self._line(f"room -= {count}")
        self._line(f"if room < 0: {self._too_many(f'has more than {MAX_ELEMENTS} elements')}")

    # -- fields

    def _field(self, field: Field, target: str) -> None:
        if field.array:
            self._array(field, target)
        elif field.kind == "struct":
            self._part(field, target)
        elif field.kind in FORMATS:
            self._gather(FORMATS[field.kind], target)
        else:
            self._sized(field, target)

    def _part(self, field: Field, target: str) -> None:
        assert field.of
        if not is_nullable(field, self._version):
            self._line(f"{target} = {self._struct(field.of)}")
            return
        mark = self._unique("n")
        self._gather("b", mark)
        self._flush()
        self._line(f"if {mark} < 0: {target} = None")
        self._line("else:")
        self._indent += 1
        self._line(f"{target} = {self._struct(field.of)}")
        self._indent -= 1

    def _sized(self, field: Field, target: str, is_element: bool = False) -> None:
        """A string, bytes or records: a length and as many bytes."""
        n = self._length("h" if field.kind == "string" else "i")
        is_optional = is_nullable(field, self._version) and not is_element
        if is_optional:
            self._line(f"if {n} < 0: {target} = None")
            self._line("else:")
            self._indent += 1
        stop = self._unique("stop")
        self._line(f"{stop} = position + {n}")
        within = f"{stop} > end" if is_optional else f"{n} < 0 or {stop} > end"
        self._line(f"if {within}: {self._fail(field.name, 'is null or longer than what is left')}")
        if field.kind != "records":
            self._line(f"if {n} > 255:")
            self._line(f"    room -= {n} >> 8")
            self._line(f"    if room < 0: {self._too_many(f'{field.name} is too long')}")
            if field.kind == "string":
                self._line(f"    if {n} > {MAX_STRING_BYTES}: {self._fail(field.name, 'is too long')}")
        value = {
            "string": f'str(buffer[position:{stop}], "utf-8")',
            "bytes": f"bytes(buffer[position:{stop}])",
            "records": f"view[position:{stop}]",
        }[field.kind]
        self._line(f"{target} = {value}")
        self._line(f"position = {stop}")
        if is_optional:
            self._indent -= 1

    def _array(self, field: Field, target: str) -> None:
        n = self._length("i")
        is_optional = is_nullable(field, self._version)
        if is_optional:
            self._line(f"if {n} < 0: {target} = None")
            self._line("else:")
            self._indent += 1
        least = _least_size(field, self._version, self._is_flexible)
        too_many = f"{n} * {least} > end - position"
        within = too_many if is_optional else f"{n} < 0 or {too_many}"
        self._line(
            f"if {within}: {self._fail(field.name, 'is null or has more elements than there are bytes')}"
        )
        self._charge(n)
        if self._slowly:
            self._line(f"count += {n}")
        if field.kind in FORMATS and field.kind != "uuid":
            format_ = FORMATS[field.kind]
            few = f"few_{field.kind}"
            self.names[few] = [Struct(f">{count}{format_}").unpack_from for count in range(FEW)]
            many = f'unpack_from(f">{{{n}}}{format_}", buffer, position)'
            self._line(f"{target} = list({few}[{n}](buffer, position) if {n} < {FEW} else {many})")
            self._line(f"position += {n} * {least}")
        else:
            self._elements(field, target, n)
        if is_optional:
            self._indent -= 1

    def _elements(self, field: Field, target: str, n: str) -> None:
        items = self._unique("items")
        self._line(f"{target} = {items} = []")
        self._line(f"for _ in range({n}):")
        self._indent += 1
        if field.kind == "struct":
            assert field.of
            self._line(f"{items}.append({self._struct(field.of)})")
        elif field.kind == "uuid":
            self._line(f"{items}.append(read_id(bytes(buffer[position:position + 16])))")
            self._line("position += 16")
        else:
            value = self._unique("v")
            self._sized(field, value, is_element=True)
            self._line(f"{items}.append({value})")
        if self._slowly:
            self._line("left -= 1")
            self._line("if left < 0:")
            self._line("    yield")
            self._line(f"    left = {SLICE}")
        self._indent -= 1


def _least_size(field: Field, version: int, is_flexible: bool) -> int:
    """The fewest bytes that one element of an array can have."""
    if field.kind in SIZES:
        return SIZES[field.kind]
    if field.kind != "struct":
        return 1 if is_flexible else {"string": 2, "bytes": 4, "records": 4}[field.kind]
    assert field.of
    size = 1 if is_flexible else 0  # the count of tags
    for part in fields_of(field.of, version):
        if part.tag is not None:
            continue
        if part.array:
            size += 1 if is_flexible else 4
        elif part.kind == "struct" and is_nullable(part, version):
            size += 1
        else:
            size += _least_size(part, version, is_flexible)
    return size
