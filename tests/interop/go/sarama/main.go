// sarama behind the commands of package ops.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"ottla.interop/ops"
)

const maxMessageBytes = 6 << 20

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

// The broker's words for where a setting comes from.
var sources = map[sarama.ConfigSource]string{
	sarama.SourceTopic:                "DYNAMIC_TOPIC_CONFIG",
	sarama.SourceDynamicBroker:        "DYNAMIC_BROKER_CONFIG",
	sarama.SourceDynamicDefaultBroker: "DYNAMIC_DEFAULT_BROKER_CONFIG",
	sarama.SourceStaticBroker:         "STATIC_BROKER_CONFIG",
	sarama.SourceDefault:              "DEFAULT_CONFIG",
}

type client struct {
	servers   []string
	admin     sarama.ClusterAdmin
	producers map[string]sarama.SyncProducer
}

func main() {
	servers := []string{os.Args[1]}
	admin, err := sarama.NewClusterAdmin(servers, settings())
	if err != nil {
		panic(err)
	}
	c := &client{servers, admin, map[string]sarama.SyncProducer{}}
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

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Return.Errors = true
	// Its idempotent producer wants exactly this.
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	config.Producer.Return.Successes = true
	config.Producer.Return.Errors = true
	config.Producer.MaxMessageBytes = maxMessageBytes
	config.Producer.Partitioner = sarama.NewManualPartitioner
	return config
}

func code(err error) (int16, bool) {
	var known sarama.KError
	if errors.As(err, &known) {
		return int16(known), true
	}
	return 0, false
}

func (c *client) create(command ops.Command) (ops.Answer, error) {
	configs := map[string]*string{}
	for name, value := range command.Configs {
		configs[name] = &value
	}
	detail := &sarama.TopicDetail{NumPartitions: command.Partitions, ReplicationFactor: 1, ConfigEntries: configs}
	return nil, c.admin.CreateTopic(command.Topic, detail, false)
}

func (c *client) delete(command ops.Command) (ops.Answer, error) {
	return nil, c.admin.DeleteTopic(command.Topic)
}

func (c *client) widen(command ops.Command) (ops.Answer, error) {
	return nil, c.admin.CreatePartitions(command.Topic, command.Partitions, nil, false)
}

func (c *client) topics(ops.Command) (ops.Answer, error) {
	found, err := c.admin.ListTopics()
	topics := map[string]int32{}
	for name, detail := range found {
		topics[name] = detail.NumPartitions
	}
	return ops.Answer{"topics": topics}, err
}

func resource(command ops.Command) (sarama.ConfigResourceType, string) {
	if command.Broker != nil {
		return sarama.BrokerResource, strconv.Itoa(int(*command.Broker))
	}
	return sarama.TopicResource, command.Topic
}

func (c *client) configure(command ops.Command) (ops.Answer, error) {
	kind, name := resource(command)
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for key, value := range command.Configs {
		changes[key] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
		}
	}
	return nil, c.admin.IncrementalAlterConfig(kind, name, changes, false)
}

func (c *client) configs(command ops.Command) (ops.Answer, error) {
	kind, name := resource(command)
	entries, err := c.admin.DescribeConfig(sarama.ConfigResource{Type: kind, Name: name})
	configs := map[string][]any{}
	for _, entry := range entries {
		configs[entry.Name] = []any{entry.Value, sources[entry.Source]}
	}
	return ops.Answer{"configs": configs}, err
}

func (c *client) deleteRecords(command ops.Command) (ops.Answer, error) {
	return nil, c.admin.DeleteRecords(command.Topic, map[int32]int64{command.Partition: command.Offset})
}

func (c *client) logDirs(command ops.Command) (ops.Answer, error) {
	found, err := c.admin.DescribeLogDirs([]int32{*command.Broker})
	sizes := map[string]int64{}
	for _, dir := range found[*command.Broker] {
		for _, topic := range dir.Topics {
			for _, partition := range topic.Partitions {
				if topic.Topic == command.Topic {
					sizes[strconv.Itoa(int(partition.PartitionID))] = partition.Size
				}
			}
		}
	}
	return ops.Answer{"sizes": sizes}, err
}

func (c *client) producer(wanted map[string]string) (sarama.SyncProducer, error) {
	name := fmt.Sprint(wanted)
	if found := c.producers[name]; found != nil {
		return found, nil
	}
	config := settings()
	config.Producer.Compression = codecs[wanted["compression.type"]]
	made, err := sarama.NewSyncProducer(c.servers, config)
	if err == nil {
		c.producers[name] = made
	}
	return made, err
}

func (c *client) produce(command ops.Command) (ops.Answer, error) {
	producer, err := c.producer(command.Producer)
	if err != nil {
		return nil, err
	}
	var messages []*sarama.ProducerMessage
	for _, record := range command.Records {
		message := &sarama.ProducerMessage{Topic: command.Topic, Partition: command.Partition}
		// An encoder of no bytes is not the same as no encoder.
		if record.Key != nil {
			message.Key = sarama.ByteEncoder(record.Key)
		}
		if record.Value != nil {
			message.Value = sarama.ByteEncoder(record.Value)
		}
		if record.Timestamp != nil {
			message.Timestamp = time.UnixMilli(*record.Timestamp)
		}
		for _, header := range record.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
		messages = append(messages, message)
	}
	err = producer.SendMessages(messages)
	var failed sarama.ProducerErrors
	if errors.As(err, &failed) {
		err = failed[0].Err
	}
	offsets := make([]int64, len(messages))
	for i, message := range messages {
		offsets[i] = message.Offset
	}
	return ops.Answer{"offsets": offsets}, err
}

// partition is one partition, ready to be read.
type partition struct {
	command    ops.Command
	client     sarama.Client
	start, end int64
}

func (c *client) open(command ops.Command) (*partition, error) {
	config := settings()
	if command.Committed() {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	made, err := sarama.NewClient(c.servers, config)
	if err != nil {
		return nil, err
	}
	start, err := made.GetOffset(command.Topic, command.Partition, sarama.OffsetOldest)
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	end, err := made.GetOffset(command.Topic, command.Partition, sarama.OffsetNewest)
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return &partition{command, made, start, end}, nil
}

// read gives records from an offset on to take, until that has had enough.
func (p *partition) read(offset int64, take func(*sarama.ConsumerMessage) bool) (err error) {
	consumer, err := sarama.NewConsumerFromClient(p.client)
	if err != nil {
		return err
	}
	reader, err := consumer.ConsumePartition(p.command.Topic, p.command.Partition, offset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	limit := time.After(ops.Patience)
	for {
		select {
		case message := <-reader.Messages():
			if !take(message) {
				return nil
			}
		case failure := <-reader.Errors():
			return failure.Err
		case <-limit:
			return fmt.Errorf("stuck between %d and %d", offset, p.end)
		}
	}
}

func (c *client) consume(command ops.Command) (ops.Answer, error) {
	opened, err := c.open(command)
	if err != nil {
		return nil, err
	}
	defer opened.client.Close()
	records := []ops.Consumed{}
	if opened.start < opened.end {
		err = opened.read(opened.start, func(message *sarama.ConsumerMessage) bool {
			records = append(records, describe(message))
			return message.Offset+1 < opened.end
		})
	}
	return ops.Answer{"start": opened.start, "end": opened.end, "records": records}, err
}

func (c *client) probe(command ops.Command) (ops.Answer, error) {
	opened, err := c.open(command)
	if err != nil {
		return nil, err
	}
	defer opened.client.Close()
	found := make([]*ops.Consumed, len(command.Offsets))
	for i, offset := range command.Offsets {
		if offset >= opened.end {
			continue
		}
		err := opened.read(offset, func(message *sarama.ConsumerMessage) bool {
			one := describe(message)
			found[i] = &one
			return false
		})
		if err != nil {
			return nil, err
		}
	}
	return ops.Answer{"records": found}, nil
}

func describe(message *sarama.ConsumerMessage) ops.Consumed {
	headers := []ops.Header{}
	for _, header := range message.Headers {
		headers = append(headers, ops.Header{Name: string(header.Key), Value: header.Value})
	}
	return ops.Consumed{
		Offset:    message.Offset,
		Timestamp: message.Timestamp.UnixMilli(),
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
	}
}

func (c *client) times(command ops.Command) (ops.Answer, error) {
	made, err := sarama.NewClient(c.servers, settings())
	if err != nil {
		return nil, err
	}
	defer made.Close()
	answers := [][]any{}
	for _, timestamp := range command.Timestamps {
		offset, err := made.GetOffset(command.Topic, command.Partition, timestamp)
		if err != nil {
			return nil, err
		}
		if offset < 0 {
			answers = append(answers, []any{timestamp, nil})
		} else {
			answers = append(answers, []any{timestamp, offset})
		}
	}
	return ops.Answer{"times": answers}, nil
}
