// franz-go behind the commands of package ops.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"ottla.interop/ops"
)

const maxBatchBytes = 6 << 20

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

type client struct {
	servers   string
	base      *kgo.Client
	admin     *kadm.Client
	producers map[string]*kgo.Client
}

func main() {
	servers := os.Args[1]
	base, err := kgo.NewClient(kgo.SeedBrokers(servers))
	if err != nil {
		panic(err)
	}
	c := &client{servers, base, kadm.NewClient(base), map[string]*kgo.Client{}}
	ops.Serve(map[string]ops.Handler{
		"create":         c.create,
		"delete":         c.delete,
		"widen":          c.widen,
		"topics":         c.topics,
		"configure":      c.configure,
		"configs":        c.configs,
		"delete_records": c.deleteRecords,
		"log_dirs":       c.logDirs,
		"produce":        c.produce,
		"consume":        c.consume,
		"probe":          c.probe,
		"times":          c.times,
	}, code)
}

func code(err error) (int16, bool) {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Code, true
	}
	return 0, false
}

func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), ops.Patience)
}

func (c *client) create(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	configs := map[string]*string{}
	for name, value := range command.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	_, err := c.admin.CreateTopic(ctx, command.Partitions, 1, configs, command.Topic)
	return nil, err
}

func (c *client) delete(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	_, err := c.admin.DeleteTopic(ctx, command.Topic)
	return nil, err
}

func (c *client) widen(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	answers, err := c.admin.UpdatePartitions(ctx, int(command.Partitions), command.Topic)
	if err != nil {
		return nil, err
	}
	return nil, answers.Error()
}

// topics asks the broker itself: kadm would answer from what it heard a moment ago.
func (c *client) topics(ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = nil // all of them
	found, err := request.RequestWith(ctx, c.base)
	if err != nil {
		return nil, err
	}
	topics := map[string]int{}
	for _, topic := range found.Topics {
		topics[*topic.Topic] = len(topic.Partitions)
	}
	return ops.Answer{"topics": topics}, nil
}

func (c *client) configure(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	var changes []kadm.AlterConfig
	for name, value := range command.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	var answers kadm.AlterConfigsResponses
	var err error
	if command.Broker != nil {
		answers, err = c.admin.AlterBrokerConfigs(ctx, changes, *command.Broker)
	} else {
		answers, err = c.admin.AlterTopicConfigs(ctx, changes, command.Topic)
	}
	for _, answer := range answers {
		err = errors.Join(err, answer.Err)
	}
	return nil, err
}

func (c *client) configs(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	var found kadm.ResourceConfigs
	var err error
	if command.Broker != nil {
		found, err = c.admin.DescribeBrokerConfigs(ctx, *command.Broker)
	} else {
		found, err = c.admin.DescribeTopicConfigs(ctx, command.Topic)
	}
	configs := map[string][]any{}
	for _, resource := range found {
		err = errors.Join(err, resource.Err)
		for _, config := range resource.Configs {
			configs[config.Key] = []any{config.Value, config.Source.String()}
		}
	}
	return ops.Answer{"configs": configs}, err
}

func (c *client) deleteRecords(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	var until kadm.Offsets
	until.AddOffset(command.Topic, command.Partition, command.Offset, -1)
	answers, err := c.admin.DeleteRecords(ctx, until)
	if err != nil {
		return nil, err
	}
	return nil, answers.Error()
}

func (c *client) logDirs(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	dirs, err := c.admin.DescribeBrokerLogDirs(ctx, *command.Broker, nil)
	sizes := map[string]int64{}
	for _, dir := range dirs {
		err = errors.Join(err, dir.Err)
		for _, partition := range dir.Topics[command.Topic] {
			sizes[strconv.Itoa(int(partition.Partition))] = partition.Size
		}
	}
	return ops.Answer{"sizes": sizes}, err
}

func (c *client) producer(settings map[string]string) (*kgo.Client, error) {
	name := fmt.Sprint(settings)
	if found := c.producers[name]; found != nil {
		return found, nil
	}
	codec, known := codecs[settings["compression.type"]]
	if !known {
		codec = kgo.NoCompression()
	}
	made, err := kgo.NewClient(
		kgo.SeedBrokers(c.servers),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(maxBatchBytes),
		kgo.ManualFlushing(),
		kgo.MaxBufferedRecords(1<<20),
	)
	c.producers[name] = made
	return made, err
}

// produce sends the records together; the producer is idempotent, as franz-go's are unless told otherwise.
func (c *client) produce(command ops.Command) (ops.Answer, error) {
	producer, err := c.producer(command.Producer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := patience()
	defer cancel()
	offsets := make([]int64, len(command.Records))
	failures := make([]error, len(command.Records))
	for i, record := range command.Records {
		sent := &kgo.Record{Topic: command.Topic, Partition: command.Partition, Key: record.Key, Value: record.Value}
		if record.Timestamp != nil {
			sent.Timestamp = time.UnixMilli(*record.Timestamp)
		}
		for _, header := range record.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		producer.Produce(ctx, sent, func(record *kgo.Record, err error) {
			offsets[i], failures[i] = record.Offset, err
		})
	}
	err = producer.Flush(ctx)
	return ops.Answer{"offsets": offsets}, errors.Join(append(failures, err)...)
}

// read gives records from an offset on to take, until that has had enough.
func (c *client) read(command ops.Command, from kgo.Offset, take func(*kgo.Record) bool) error {
	isolation := kgo.ReadUncommitted()
	if command.Committed() {
		isolation = kgo.ReadCommitted()
	}
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(c.servers),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{command.Topic: {command.Partition: from}}),
		kgo.FetchIsolationLevel(isolation),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, cancel := patience()
	defer cancel()
	for {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for records := fetches.RecordIter(); !records.Done(); {
			if !take(records.Next()) {
				return nil
			}
		}
	}
}

func (c *client) ends(command ops.Command) (start, end int64, err error) {
	ctx, cancel := patience()
	defer cancel()
	list := c.admin.ListEndOffsets
	if command.Committed() {
		list = c.admin.ListCommittedOffsets
	}
	starts, err := c.admin.ListStartOffsets(ctx, command.Topic)
	if err != nil {
		return 0, 0, err
	}
	ends, err := list(ctx, command.Topic)
	if err != nil {
		return 0, 0, err
	}
	first, _ := starts.Lookup(command.Topic, command.Partition)
	last, _ := ends.Lookup(command.Topic, command.Partition)
	return first.Offset, last.Offset, errors.Join(first.Err, last.Err)
}

func (c *client) consume(command ops.Command) (ops.Answer, error) {
	start, end, err := c.ends(command)
	if err != nil {
		return nil, err
	}
	records := []ops.Consumed{}
	if start < end {
		err = c.read(command, kgo.NewOffset().At(start), func(record *kgo.Record) bool {
			records = append(records, describe(record))
			return record.Offset+1 < end
		})
	}
	return ops.Answer{"start": start, "end": end, "records": records}, err
}

func (c *client) probe(command ops.Command) (ops.Answer, error) {
	_, end, err := c.ends(command)
	if err != nil {
		return nil, err
	}
	found := make([]*ops.Consumed, len(command.Offsets))
	for i, offset := range command.Offsets {
		if offset >= end {
			continue
		}
		err := c.read(command, kgo.NewOffset().At(offset), func(record *kgo.Record) bool {
			one := describe(record)
			found[i] = &one
			return false
		})
		if err != nil {
			return nil, err
		}
	}
	return ops.Answer{"records": found}, nil
}

func describe(record *kgo.Record) ops.Consumed {
	headers := []ops.Header{}
	for _, header := range record.Headers {
		headers = append(headers, ops.Header{Name: header.Key, Value: header.Value})
	}
	kinds := map[int8]string{-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
	return ops.Consumed{
		Offset:        record.Offset,
		Timestamp:     record.Timestamp.UnixMilli(),
		TimestampType: kinds[record.Attrs.TimestampType()],
		Key:           record.Key,
		Value:         record.Value,
		LeaderEpoch:   &record.LeaderEpoch,
		Headers:       headers,
	}
}

func (c *client) times(command ops.Command) (ops.Answer, error) {
	ctx, cancel := patience()
	defer cancel()
	answers := [][]any{}
	for _, timestamp := range command.Timestamps {
		listed, err := c.admin.ListOffsetsAfterMilli(ctx, timestamp, command.Topic)
		if err != nil {
			return nil, err
		}
		found, _ := listed.Lookup(command.Topic, command.Partition)
		if found.Err != nil {
			return nil, found.Err
		}
		answer := []any{timestamp, nil, nil}
		if found.Timestamp >= 0 { // kadm puts the end of the partition where nothing was found
			answer = []any{timestamp, found.Offset, found.Timestamp}
		}
		answers = append(answers, answer)
	}
	return ops.Answer{"times": answers}, nil
}
