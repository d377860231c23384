"""Verify on Spark: the same findings as the plain command, whatever is damaged and however segments are shared out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.logtools.findings import DEFECT
from ottla.logtools.verify.data_dir import verify as plain_verify
from ottla.spark.jobs.verify import verify
from tests.spark.jobs.helping import FS, target_at


@pytest.mark.parametrize(("number", "task_bytes"), [(0, 12_000), (1, 1 << 20)])
def test_findings_are_those_of_the_plain_command(
    spark: SparkSession, damaged: list[Path], number: int, task_bytes: int
) -> None:
    target = target_at(damaged[number])
    expected = list(plain_verify(FS, target))
    assert list(verify(spark, FS, target, task_bytes)) == expected
    assert len([finding for finding in expected if finding.level == DEFECT]) > 10


def test_a_single_partition_is_judged_with_what_lies_around_it(
    spark: SparkSession, damaged: list[Path]
) -> None:
    target = target_at(damaged[0] / "orders-1")
    expected = list(plain_verify(FS, target))
    assert expected
    assert list(verify(spark, FS, target)) == expected
