// Package ops is the frame that both clients share: one JSON command a line in, one JSON answer a line out. Commands
// and answers are those of java/KafkaOps.java, so that the same tests drive all of them.
package ops

import (
	"bufio"
	"encoding/json"
	"os"
	"time"
)

// Patience bounds every wait for a broker: a test that hangs says nothing.
const Patience = 240 * time.Second

// Command is what a test asks for; each operation uses some of the fields. Bytes are base64 in JSON, null stays nil.
type Command struct {
	Op         string            `json:"op"`
	Topic      string            `json:"topic"`
	Partition  int32             `json:"partition"`
	Partitions int32             `json:"partitions"`
	Configs    map[string]string `json:"configs"`
	Broker     *int32            `json:"broker"`
	Offset     int64             `json:"offset"`
	Offsets    []int64           `json:"offsets"`
	Timestamps []int64           `json:"timestamps"`
	Isolation  string            `json:"isolation"`
	Producer   map[string]string `json:"producer"`
	Records    []Record          `json:"records"`
}

// Committed says whether only committed records are asked for.
func (c Command) Committed() bool {
	return c.Isolation == "read_committed"
}

// Record is one to be sent.
type Record struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Timestamp *int64   `json:"timestamp"`
	Headers   []Header `json:"headers"`
}

// Header is a pair in JSON: its name and its value.
type Header struct {
	Name  string
	Value []byte
}

// UnmarshalJSON reads the pair.
func (h *Header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.Name, &h.Value})
}

// MarshalJSON writes the pair.
func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

// Consumed is a record as a consumer got it; what a library does not tell is left out.
type Consumed struct {
	Offset        int64    `json:"offset"`
	Timestamp     int64    `json:"timestamp"`
	TimestampType string   `json:"timestamp_type,omitempty"`
	Key           []byte   `json:"key"`
	Value         []byte   `json:"value"`
	LeaderEpoch   *int32   `json:"leader_epoch,omitempty"`
	Headers       []Header `json:"headers"`
}

// Answer is what goes back.
type Answer map[string]any

// Handler does one operation.
type Handler func(Command) (Answer, error)

// Serve answers commands until there are no more. code finds Kafka's error code in an error, if it has one.
func Serve(handlers map[string]Handler, code func(error) (int16, bool)) {
	commands := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := commands.ReadBytes('\n')
		if err != nil {
			return
		}
		answer, err := handle(handlers, line)
		if err != nil {
			answer = Answer{"error": err.Error()}
			if number, found := code(err); found {
				answer["code"] = number
			}
		}
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func handle(handlers map[string]Handler, line []byte) (Answer, error) {
	var command Command
	if err := json.Unmarshal(line, &command); err != nil {
		return nil, err
	}
	answer, err := handlers[command.Op](command)
	if answer == nil {
		answer = Answer{}
	}
	return answer, err
}
