"""Names of files and directories, read back as what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.names import TopicPartition
from ottla.storage import layout
from ottla.storage.layout import SegmentFile

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("marker", ["", ".deleted", ".cleaned", ".swap"])
def test_a_segment_file_is_named_by_its_base_offset(suffix: str, marker: str) -> None:
    name = layout.segment_file(42, suffix, marker)
    assert name == f"00000000000000000042{suffix}{marker}"
    assert layout.parse_segment_file(name) == SegmentFile(42, suffix, marker)


@settings(max_examples=50)
@given(st.integers(0, 2**63 - 1))
def test_names_sort_as_their_offsets_do(offset: int) -> None:
    assert layout.segment_file(offset, ".log") <= layout.segment_file(2**63 - 1, ".log")
    assert layout.parse_segment_file(layout.segment_file(offset, ".log")) == SegmentFile(offset, ".log", "")


@pytest.mark.parametrize(
    "name",
    [
        "42.log",
        "00000000000000000042.txt",
        "00000000000000000042",
        "x0000000000000000042.log",
        "leader-epoch-checkpoint",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٢.log",
    ],
)
def test_other_names_are_no_segment_files(name: str) -> None:
    assert layout.parse_segment_file(name) is None


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("t-0", "t", 0),
        ("a-b-17", "a-b", 17),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        ("a.b_c-1", "a.b_c", 1),
    ],
)
def test_a_partition_directory_is_topic_dash_number(name: str, topic: str, partition: int) -> None:
    assert layout.parse_partition_dir(name) == TopicPartition(topic, partition)
    assert str(TopicPartition(topic, partition)) == name


@pytest.mark.parametrize(
    "name", ["topic", "-0", "t-", "t-x", "t-1x", "t--1 ", ".-0", "..-0", "a b-0", "t-٣", f"{'x' * 250}-0"]
)
def test_other_directories_are_no_partitions(name: str) -> None:
    assert layout.parse_partition_dir(name) is None


@pytest.mark.parametrize("mark", ["-delete", "-future", "-stray"])
def test_a_marked_directory_says_its_partition_and_its_mark(mark: str) -> None:
    assert layout.parse_marked_dir(f"a-b-3.{UNIQUE}{mark}") == (TopicPartition("a-b", 3), mark)


@pytest.mark.parametrize(
    "name", ["t-0", "t-0-delete", f"t-0.{UNIQUE}", f"t.{UNIQUE}-delete", f"t-0.{UNIQUE[:-1]}-delete"]
)
def test_other_directories_are_not_marked(name: str) -> None:
    assert layout.parse_marked_dir(name) is None


@pytest.mark.parametrize("length", [1, 200, 249])
def test_a_marked_directory_fits_into_a_file_name(length: int) -> None:
    name = layout.marked_dir(TopicPartition("t" * length, 12345), UNIQUE, layout.DELETE_DIR)
    assert len(name) <= 255
    marked = layout.parse_marked_dir(name)
    assert marked is not None
    assert marked[0].partition == 12345
    assert marked[1] == layout.DELETE_DIR
