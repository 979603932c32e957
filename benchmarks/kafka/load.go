package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

// codecs are how the batches of a topic are compressed.
var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{{"none", kgo.NoCompression()}, {"snappy", kgo.SnappyCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}}

var formats = []string{"json", "avro"}

// loader writes topics.
type loader struct {
	admin  *kadm.Client
	topics []topic
}

// load makes a topic for each format and codec, with all records of a directory.
func (l *loader) load(dir string) error {
	ctx := context.Background()
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no *.ndjson: %w", dir, err)
	}
	id, err := registerSchema()
	if err != nil {
		return err
	}
	unique := time.Now().UnixNano()
	for _, format := range formats {
		for _, c := range codecs {
			t := topic{Format: format, Codec: c.name, Name: fmt.Sprintf("bench-%s-%s-%d", format, c.name, unique)}
			if _, err := l.admin.CreateTopic(ctx, int32(len(files)), 1, nil, t.Name); err != nil {
				return fmt.Errorf("make topic %s: %w", t.Name, err)
			}
			l.topics = append(l.topics, t)
		}
	}
	for _, c := range codecs {
		if err := l.write(ctx, c.name, c.codec, files, id); err != nil {
			return fmt.Errorf("write with codec %s: %w", c.name, err)
		}
	}
	return nil
}

// remove deletes the topics.
func (l *loader) remove() error {
	names := make([]string, len(l.topics))
	for i, t := range l.topics {
		names[i] = t.Name
	}
	if len(names) == 0 {
		return nil
	}
	res, err := l.admin.DeleteTopics(context.Background(), names...)
	if err != nil {
		return err
	}
	return res.Error()
}

// write sends the lines of the files to the topics of one codec.
func (l *loader) write(ctx context.Context, name string, codec kgo.CompressionCodec, files []string, id uint32) error {
	p, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaSingle.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond), kgo.MaxBufferedRecords(100_000), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return err
	}
	defer p.Close()
	failed := kgo.AbortingFirstErrPromise(p)
	readers := make([]*bufio.Scanner, len(files))
	for i, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		readers[i] = bufio.NewScanner(f)
	}
	// The partitions grow together, as those of a topic do.
	for open := len(files); open > 0; {
		for i, r := range readers {
			if r == nil {
				continue
			}
			if !r.Scan() {
				if err := r.Err(); err != nil {
					return fmt.Errorf("%s: %w", files[i], err)
				}
				readers[i] = nil
				open--
				continue
			}
			line := bytes.Clone(r.Bytes())
			row, err := appendAvro(nil, line, id)
			if err != nil {
				return fmt.Errorf("%s: %w", files[i], err)
			}
			for _, t := range l.topics {
				value := line
				if t.Format == "avro" {
					value = row
				}
				if t.Codec == name {
					p.Produce(ctx, &kgo.Record{Topic: t.Name, Partition: int32(i), Value: value}, failed.Promise())
				}
			}
		}
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	return failed.Err()
}

const schema = `{"type":"record","name":"Click","fields":[{"name":"id","type":"long"},{"name":"ts","type":{"type":"long","logicalType":"timestamp-millis"}},
{"name":"user_name","type":"string"},{"name":"country","type":"string"},{"name":"amount","type":"double"},{"name":"url","type":"string"},{"name":"ok","type":"boolean"}]}`

// registerSchema tells the registry the schema and returns its id.
func registerSchema() (uint32, error) {
	body, err := json.Marshal(map[string]any{"schema": schema})
	if err != nil {
		return 0, err
	}
	resp, err := http.Post(services.RegistryURL()+"/subjects/bench-value/versions", "application/vnd.schemaregistry.v1+json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var a struct{ ID uint32 }
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return 0, err
	}
	if a.ID == 0 {
		return 0, fmt.Errorf("the registry answers %s and no id", resp.Status)
	}
	return a.ID, nil
}

// appendAvro writes a line of NDJSON as Avro, behind the id of its schema.
func appendAvro(b, line []byte, id uint32) ([]byte, error) {
	var r struct {
		ID      int64     `json:"id"`
		TS      time.Time `json:"ts"`
		User    string    `json:"user_name"`
		Country string    `json:"country"`
		Amount  float64   `json:"amount"`
		URL     string    `json:"url"`
		OK      bool      `json:"ok"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	text := func(s string) { b = append(binary.AppendVarint(b, int64(len(s))), s...) }
	b = binary.BigEndian.AppendUint32(append(b, 0), id)
	b = binary.AppendVarint(b, r.ID)
	b = binary.AppendVarint(b, r.TS.UnixMilli())
	text(r.User)
	text(r.Country)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.Amount))
	text(r.URL)
	ok := byte(0)
	if r.OK {
		ok = 1
	}
	return append(b, ok), nil
}
