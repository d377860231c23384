"""The committed message classes are what the tool writes."""

from __future__ import annotations

from pathlib import Path

from tools.generate_messages import generate

import ottla.protocol.messages
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest

COMMITTED = Path(ottla.protocol.messages.__file__).parent


def test_the_committed_messages_are_what_the_tool_writes(tmp_path: Path) -> None:
    generate(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.glob("*.py")}
    committed = {path.name: path.read_text() for path in COMMITTED.glob("*.py") if path.name != "__init__.py"}
    assert written.keys() == committed.keys(), "run `make messages`"
    different = [name for name in written if written[name] != committed[name]]
    assert not different, "run `make messages`"


def test_messages_compare_by_their_fields_and_show_what_is_set() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=0)
    assert ProduceRequest() != PartitionProduceData()
    assert repr(ProduceRequest(acks=1)) == "ProduceRequest(acks=1)"
    assert repr(PartitionProduceData(records=memoryview(b"abc"))) == "PartitionProduceData(records=<3 bytes>)"


def test_lists_are_not_shared_between_messages() -> None:
    first, second = ProduceRequest(), ProduceRequest()
    assert first.topic_data == []
    assert first.topic_data is not second.topic_data


def test_a_list_that_may_be_null_begins_as_null() -> None:
    assert MetadataRequest().topics is None
    assert MetadataRequest(topics=[MetadataRequestTopic(name="t")]).topics == [MetadataRequestTopic(name="t")]
