"""Expectations: checks on decoded rows, evaluated by Arrow where they are simple enough, so that no row sees the JVM.

A row passes a check only where it is true, as in a WHERE: null does not pass. What the small evaluator does not know,
or knows no Arrow function for with these types, is left to Spark.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.pipeline.check_syntax import Column, Literal, Node, Unsupported, parse
from ottla.spark.pipeline.config import Expectation

Value = Any  # a pa.ChunkedArray, pa.Array or pa.Scalar
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError)


class Checks:
    """All checks of a pipeline, on one schema. Unsupported is raised where one of them needs Spark."""

    def __init__(self, expectations: Sequence[Expectation], schema: pa.Schema) -> None:
        self._checks = [(one.name, parse(one.check)) for one in expectations]
        nothing = schema.empty_table()
        for (_, tree), one in zip(self._checks, expectations, strict=True):
            try:
                kind = _evaluate(tree, nothing).type
            except _ARROW_ERRORS as error:
                raise Unsupported(f"{one.check}: {error}") from None
            if not pa.types.is_boolean(kind):
                raise Unsupported(f"{one.check} is {kind}, not true or false")

    def failures(self, rows: pa.Table) -> pa.Array | None:
        """For each row, the names of the checks that it fails, or null; None if there is no such row."""
        if not self._checks or not rows.num_rows:
            return None
        passed = [(name, _passed(tree, rows)) for name, tree in self._checks]
        if all(pc.all(column).as_py() for _, column in passed):
            return None
        nothing = pa.scalar(None, pa.string())
        told = [pc.if_else(column, nothing, pa.scalar(name)) for name, column in passed]
        if len(told) == 1:
            return told[0]
        joined = pc.binary_join_element_wise(*told, "; ", null_handling="skip")
        return pc.if_else(pc.equal(joined, ""), nothing, joined)


def _passed(tree: Node, rows: pa.Table) -> pa.Array:
    try:
        found = _evaluate(tree, rows)
    except pa.ArrowInvalid:  # an overflow in one row must not fail the others
        return pa.array([_passes_alone(tree, rows.slice(at, 1)) for at in range(rows.num_rows)])
    if isinstance(found, pa.Scalar):
        return pa.array([found.as_py() is True] * rows.num_rows)
    found = pc.fill_null(found, False)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _passes_alone(tree: Node, row: pa.Table) -> bool:
    try:
        found = _evaluate(tree, row)
    except pa.ArrowInvalid:
        return False
    return bool((found if isinstance(found, pa.Scalar) else found[0]).as_py())


def _evaluate(node: Node, rows: pa.Table) -> Value:
    if isinstance(node, Literal):
        return pa.scalar(node.value, pa.bool_() if node.value is None else None)
    if isinstance(node, Column):
        return _column(node, rows)
    arguments = [_evaluate(argument, rows) for argument in node.arguments]
    return _FUNCTIONS[node.name](*arguments)


def _column(node: Column, rows: pa.Table) -> Value:
    column: Value = None
    for depth, name in enumerate(node.path):
        names = rows.schema.names if depth == 0 else _field_names(column, node)
        found = [one for one in names if one.lower() == name.lower()]
        if len(found) != 1:
            raise Unsupported(f"the column {'.'.join(node.path)}")
        column = rows.column(found[0]) if depth == 0 else pc.struct_field(column, found[0])
    return column


def _field_names(column: Value, node: Column) -> list[str]:
    if not pa.types.is_struct(column.type):
        raise Unsupported(f"{'.'.join(node.path)}: not a struct")
    return [field.name for field in column.type]


def _compared(name: str) -> Callable[[Value, Value], Value]:
    function = getattr(pc, name)

    def compare(left: Value, right: Value) -> Value:
        plain = function(left, right)
        if not (pa.types.is_floating(left.type) or pa.types.is_floating(right.type)):
            return plain
        # In Spark NaN equals itself and is greater than every other number.
        odd_left, odd_right = _is_nan(left), _is_nan(right)
        ordered = function(odd_left.cast(pa.int8()), odd_right.cast(pa.int8()))
        return pc.if_else(pc.or_(odd_left, odd_right), ordered, plain)

    return compare


def _is_nan(value: Value) -> Value:
    return pc.is_nan(value) if pa.types.is_floating(value.type) else pc.not_equal(value, value)


def _divided(left: Value, right: Value) -> Value:
    """Spark divides as doubles; by zero, the check is not true."""
    divisor = right.cast(pa.float64())
    safe = pc.if_else(pc.equal(divisor, 0.0), pa.scalar(None, pa.float64()), divisor)
    return pc.divide(left.cast(pa.float64()), safe)


def _length(value: Value) -> Value:
    return pc.utf8_length(value) if pa.types.is_string(value.type) else pc.binary_length(value)


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "or": pc.or_kleene,
    "and": pc.and_kleene,
    "not": pc.invert,
    "=": _compared("equal"),
    "!=": _compared("not_equal"),
    "<": _compared("less"),
    "<=": _compared("less_equal"),
    ">": _compared("greater"),
    ">=": _compared("greater_equal"),
    "is null": pc.is_null,
    "like": lambda value, pattern: pc.match_like(value, pattern.as_py()),
    "rlike": lambda value, pattern: pc.match_substring_regex(value, pattern.as_py()),
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": _divided,
    "length": _length,
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": lambda value: pc.utf8_trim(value, " "),
    "abs": pc.abs_checked,
    "coalesce": lambda *values: reduce(pc.coalesce, values),
}


def sql_failure(expectations: Sequence[Expectation]) -> str:
    """A SQL expression for Spark: the names of the failed checks, or null."""
    told = [f"if(coalesce(({one.check}), false), null, {_quoted(one.name)})" for one in expectations]
    joined = reduce(operator.add, (f", {text}" for text in told))
    return f"nullif(concat_ws('; '{joined}), '')"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
