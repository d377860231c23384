"""Coordinators: state that is kept in an internal topic and can be rebuilt from it alone.

A command looks at the state and returns a `CommandResult`: records to be written, and who is to be told what once they
are safe. There are two ways in which the state comes to agree with the records.

Committed offsets, consumer groups and transactions change by replay: a command changes nothing itself, its records are
replayed as they are written, and a load replays the same records. One function for both, so both lead to the same.

Classic groups are the exception. A member waits inside of them (its JoinGroup is answered with the next generation),
and what lies between two generations (who has joined so far, whose session ends when) is in no record: Kafka's format
has only groups that are stable or empty. So their commands change the group themselves, and the record is a snapshot
of it, written with `replay=False`; a load makes a group of the last snapshot. What a command changed before a
snapshot that cannot be written is taken back by its `undo`. Replay would have to invent records that no Kafka can
read, or keep the half of a group that is not in the log outside of the state.
"""
