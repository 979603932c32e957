// Command kafka writes the records of the ingest benchmark into topics, as JSON
// and as Avro messages, and keeps them there until its input ends:
//
//	go run ./benchmarks/kafka DIR
//
// DIR holds NDJSON files of benchmarks/gen; a file is a partition, a line a
// message. It starts the services kafka and registry that do not answer, prints
// one line of JSON when all is written, and then reads its input; at the end of
// that it removes the topics and what it has started.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

// facts are printed as JSON.
type facts struct {
	Brokers  []string `json:"brokers"`
	Registry string   `json:"registry"`
	Topics   []topic  `json:"topics"`
}

// topic has all records in one format, compressed one way.
type topic struct {
	Format string `json:"format"`
	Codec  string `json:"codec"`
	Name   string `json:"topic"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kafka DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "kafka:", err)
		os.Exit(1)
	}
}

func run(dir string) (err error) {
	stop, err := start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaSingle.Brokers()...))
	if err != nil {
		return err
	}
	defer client.Close()
	l := &loader{admin: kadm.NewClient(client)}
	defer func() { err = errors.Join(err, l.remove()) }()
	if err := l.load(dir); err != nil {
		return err
	}
	f := facts{Brokers: services.KafkaSingle.Brokers(), Registry: services.RegistryURL(), Topics: l.topics}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// start starts the services that do not answer; stop stops those.
func start() (stop func() error, err error) {
	var names []string
	if !brokersAnswer() {
		names = append(names, services.KafkaSingle.Service)
	}
	if !registryAnswers() {
		names = append(names, "registry")
	}
	if len(names) == 0 {
		return func() error { return nil }, nil
	}
	h, err := services.DefaultHome()
	if err != nil {
		return nil, err
	}
	stop = func() error { return h.Down(names...) }
	if err := h.Up(func(s string) { fmt.Fprintln(os.Stderr, "up", s) }, names...); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// patience is how long a server may take to show that it is there.
const patience = 3 * time.Second

func brokersAnswer() bool {
	c, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaSingle.Brokers()...))
	if err != nil {
		return false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.Ping(ctx) == nil
}

func registryAnswers() bool {
	resp, err := (&http.Client{Timeout: patience}).Get(services.RegistryURL() + "/subjects")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
