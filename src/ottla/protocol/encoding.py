"""Compiles the writer of one message in one version to Python source, and what writers write to.

Fields that a version does not have are left out; a null that a version cannot say is written as empty. Records are
never copied: the writer notes where they belong, and they go to the socket beside the bytes around them.

As with readers (decoding.py), the same writer can be had as a generator that stops after each few hundred elements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from struct import Struct, pack
from typing import Any

from ottla.names import Bytes
from ottla.protocol.message import Field, Message, Records
from ottla.protocol.wire import FEW, FORMATS, SLICE, ZERO_ID, fields_of, is_nullable, put_varint


class Output:
    """One growing run of bytes, and the records that are cut into it."""

    __slots__ = ("_cuts", "_records_size", "data")

    def __init__(self) -> None:
        self.data = bytearray()
        self._cuts: list[tuple[int, Records]] = []
        self._records_size = 0

    def __len__(self) -> int:
        return len(self.data) + self._records_size

    def add_records(self, records: Records, size_bytes: int) -> None:
        """Put records here, without copying them."""
        self._cuts.append((len(self.data), records))
        self._records_size += size_bytes

    def parts(self) -> list[Bytes]:
        """All bytes in order, to be written without joining them. Nothing may be added afterwards."""
        if not self._cuts:
            return [self.data]
        parts: list[Bytes] = []
        view = memoryview(self.data)
        begin = 0
        for position, records in self._cuts:
            if position > begin:
                parts.append(view[begin:position])
                begin = position
            if isinstance(records, list):
                parts.extend(records)
            else:
                parts.append(records)
        if begin < len(view):
            parts.append(view[begin:])
        return parts


Encode = Callable[[Any, Output], None]
EncodeSlowly = Callable[[Any, Output], Generator[None, None, None]]


def compile_encoder(message_class: type[Message], version: int) -> Encode:
    """The function that writes this version of a message to an `Output`."""
    encode: Encode = _compiled(message_class, version, slowly=False)
    return encode


def compile_slow_encoder(message_class: type[Message], version: int) -> EncodeSlowly:
    """The same as a generator that stops now and then."""
    encode: EncodeSlowly = _compiled(message_class, version, slowly=True)
    return encode


def _compiled(message_class: type[Message], version: int, slowly: bool) -> Any:
    source = _EncoderSource(message_class, version, slowly)
    text = source.text(message_class)
    names = source.names
    exec(text, names)
    return names["encode"]


class _EncoderSource:
    def __init__(self, message_class: type[Message], version: int, slowly: bool) -> None:
        self._slowly = slowly
        self._version = version
        self._is_flexible = version >= message_class.FLEXIBLE_SINCE
        self._lines: list[str] = []
        self._indent = 1
        self._count = 0
        # What one `struct` call will write: formats, and the expressions of the values.
        self._formats: list[str] = []
        self._values: list[str] = []
        self.names: dict[str, Any] = {"ZERO_ID": ZERO_ID, "put_varint": put_varint, "pack": pack}

    def text(self, message_class: type[Message]) -> str:
        self._line("data = output.data")
        if self._slowly:
            self._line(f"left = {SLICE}")
            self._line("if data is None: yield")  # a generator, also if there is no array
        self._struct(message_class, "message")
        self._flush()
        return "def encode(message, output):\n" + "\n".join(self._lines) + "\n"

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _unique(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    # -- values of a fixed size, gathered until something else comes

    def _gather(self, format_: str, *value: str) -> None:
        self._formats.append(format_)
        self._values += value

    def _pack(self, formats: list[str], values: list[str]) -> str:
        layout = "".join(formats)
        if layout in ("B", "x"):
            return f"data.append({values[0] if values else 0})"
        name = "write_" + layout.replace("?", "o")
        self.names[name] = Struct(">" + layout).pack
        return f"data += {name}({', '.join(values)})"

    def _flush(self) -> None:
        if self._formats:
            self._line(self._pack(self._formats, self._values))
            self._formats, self._values = [], []

    def _length(self, wide: str, value: str) -> None:
        """Write a length or count that is not null, after what was gathered; flushes."""
        if not self._is_flexible:
            self._gather(wide, value)
            self._flush()
            return
        formats, values = self._formats, self._values
        self._formats, self._values = [], []
        n = self._unique("n")
        self._line(f"{n} = {value} + 1")
        self._line(f"if {n} < 128: " + self._pack([*formats, "B"], [*values, n]))
        self._line("else:")
        if formats:
            self._line("    " + self._pack(formats, values))
        self._line(f"    put_varint(data, {n})")

    def _null(self, wide: str) -> str:
        if self._is_flexible:
            return 'data += b"\\0"'
        return f"data += {bytes([255]) * (2 if wide == 'h' else 4)!r}"

    # -- structures

    def _struct(self, message_class: type[Message], instance: str) -> None:
        tagged = []
        for field in fields_of(message_class, self._version):
            if field.tag is None:
                self._field(field, f"{instance}.{field.name}")
            else:
                tagged.append(field)
        if tagged:
            self._tags(instance, sorted(tagged, key=lambda f: f.tag or 0))
        elif self._is_flexible:
            self._gather("x")

    def _tags(self, instance: str, tagged: list[Field]) -> None:
        self._flush()
        present = {}
        for field in tagged:
            name = present[field.name] = self._unique("has")
            value = f"{instance}.{field.name}"
            if field.array:
                self._line(f"{name} = bool({value})")
            elif field.default is None:
                self._line(f"{name} = {value} is not None")
            else:
                self._line(f"{name} = {value} != {field.default!r}")
        count = " + ".join(present.values())
        self._line(f"data.append({count})")
        self._line(f"if {' or '.join(present.values())}:")
        self._indent += 1
        outer = self._unique("outer")
        self._line(f"{outer} = data")
        for field in tagged:
            self._line(f"if {present[field.name]}:")
            self._indent += 1
            self._line("data = bytearray()")
            self._field(field, f"{instance}.{field.name}", is_present=True)
            self._flush()
            self._line(f"put_varint({outer}, {field.tag})")
            self._line(f"put_varint({outer}, len(data))")
            self._line(f"{outer} += data")
            self._indent -= 1
        self._line(f"data = {outer}")
        self._indent -= 1

    # -- fields

    def _field(self, field: Field, value: str, is_present: bool = False) -> None:
        if field.kind in FORMATS and not field.array:
            is_id = field.kind == "uuid"
            self._gather(FORMATS[field.kind], f"({value}.bytes if {value} else ZERO_ID)" if is_id else value)
            return
        if field.kind == "struct" and not field.array:
            self._part(field, value)
            return
        wide = "h" if field.kind == "string" and not field.array else "i"
        given = self._unique("v")
        self._line(f"{given} = {value}")
        if is_nullable(field, self._version) and not is_present:
            self._flush()
            self._line(f"if {given} is None: {self._null(wide)}")
            self._line("else:")
            self._indent += 1
            self._content(field, wide, given)
            self._flush()
            self._indent -= 1
            return
        if field.nullable_since is not None or field.kind == "records":
            empty = "()" if field.array else {"string": '""', "bytes": 'b""', "records": 'b""'}[field.kind]
            self._line(f"if {given} is None: {given} = {empty}")
        self._content(field, wide, given)

    def _part(self, field: Field, value: str) -> None:
        assert field.of
        part = self._unique("o")
        self._flush()
        self._line(f"{part} = {value}")
        if not is_nullable(field, self._version):
            self._struct(field.of, part)
            return
        self._line(f'if {part} is None: data += b"\\xff"')
        self._line("else:")
        self._indent += 1
        self._line('data += b"\\1"')
        self._struct(field.of, part)
        self._flush()
        self._indent -= 1

    def _content(self, field: Field, wide: str, given: str) -> None:
        """Write a value that is there: a string, bytes, records or an array, in the variable `given`."""
        if field.array:
            self._array(field, given)
        elif field.kind == "records":
            size = self._unique("size")
            self._line(f"{size} = sum(map(len, {given})) if type({given}) is list else len({given})")
            self._length(wide, size)
            self._line(f"if {size}: output.add_records({given}, {size})")
        else:
            if field.kind == "string":
                self._line(f"{given} = {given}.encode()")
            self._length(wide, f"len({given})")
            self._line(f"data += {given}")

    def _numbers(self, format_: str, given: str) -> None:
        """Count and numbers in one; their `struct` is made once if they are few."""
        self._flush()
        few, n = f"few_{format_}", self._unique("n")
        count = "B" if self._is_flexible else "i"
        self.names[few] = [Struct(f">{count}{length}{format_}").pack for length in range(FEW)]
        stored = f"{n} + 1" if self._is_flexible else n
        self._line(f"{n} = len({given})")
        self._line(f"if {n} < {FEW}: data += {few}[{n}]({stored}, *{given})")
        self._line("else:")
        self._indent += 1
        self._length("i", n)
        self._line(f'data += pack(f">{{{n}}}{format_}", *{given})')
        self._indent -= 1

    def _array(self, field: Field, given: str) -> None:
        if field.kind in FORMATS and field.kind != "uuid":
            self._numbers(FORMATS[field.kind], given)
            return
        self._length("i", f"len({given})")
        item = self._unique("item")
        self._line(f"for {item} in {given}:")
        self._indent += 1
        if field.kind == "struct":
            assert field.of
            self._struct(field.of, item)
        elif field.kind == "uuid":
            self._line(f"data += {item}.bytes if {item} else ZERO_ID")
        else:
            self._content(field._replace(array=False), "h" if field.kind == "string" else "i", item)
        self._flush()
        if self._slowly:
            self._line("left -= 1")
            self._line("if left < 0:")
            self._line("    yield")
            self._line(f"    left = {SLICE}")
        self._indent -= 1
