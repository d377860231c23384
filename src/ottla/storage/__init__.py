"""The log on disk: what its files are called, what is in them, and how long they live.

A log directory (`log.dirs` names several) belongs to one process, which holds its `.lock`. It has a directory for each
partition, `<topic>-<partition>`, and some checkpoints: text files of a version, a count, and a line for each partition
with an offset. A checkpoint is replaced as a whole: written beside the old one, synced, renamed. layout.py has all
names, fs.py is the only door to them.

    meta.properties                    which cluster, which broker, which directory
    .kafka_cleanshutdown               only between a clean stop and the next start
    recovery-point-offset-checkpoint   all below is on disk, and is not checked after a crash
    log-start-offset-checkpoint        all below is deleted
    replication-offset-checkpoint      the high watermark: all below is on every replica in sync
    cleaner-offset-checkpoint          all below is compacted

A partition's log is a row of segments. The name of their files is the offset of their first record, in 20 digits:

    .log         batches, one after another, just as they are sent; nothing else
    .index       offset to position: 4 bytes each, relative to the name; an entry for every few KiB of log
    .timeindex   the largest timestamp so far (8 bytes), and the offset that has it (4)
    .txnindex    aborted transactions that end in this segment; most segments have none
    .snapshot    what is known of the producers just before this segment

and beside them `leader-epoch-checkpoint` (which leader wrote from which offset on) and `partition.metadata` (the topic
id). Numbers are big-endian. Only the `.log` cannot be replaced: all the others are built from it, if need be.

The life of a segment. It begins empty, when the log rolls (log/log.py), and is the only one that is appended to
(log/segment.py). Appends go to memory that the system writes when it likes; a flush (log/flusher.py) syncs them and
moves the recovery point. At the next roll it is trimmed, and from then on it does not change. It ends in one of three
ways, always by a new name first and an `unlink` later (`file.delete.delay.ms`), so that readers can finish:

- retention takes the oldest ones out: `.deleted` (log/retention.py);
- the cleaner writes what is left of some as `.cleaned`, renames that to `.swap` once it is on disk, and then to the
  name of the first of them (cleaning/, log/swap.py): a crash leaves the old ones or the new one;
- truncation cuts the log from an offset on (log/truncation.py), after it has lowered the recovery point on disk.

A whole partition goes as a directory: `<topic>-<partition>.<unique>-delete`. One that moves here from another
directory is `-future` until it is complete, and one that nobody knows any more is `-stray`.

A start (recovery/) finishes or undoes what a crash has left half done, and opens the logs. After a clean stop that is
all. After a crash, everything above the recovery point is read, checked, cut where it stops being good, and flushed
before anybody is served. What is missing that once was there is put on record (losses.py), never passed over.
"""
