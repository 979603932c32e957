//go:build integration

package kafkatest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// segment is the file in which the broker keeps the topic's partition 0.
func (w *world) segment() string {
	return home(w.t).Path("data", w.cluster.Service, "1", "log", w.topic+"-0", "00000000000000000000.log")
}

// flip changes one bit behind a text in a file, and back. The broker sends what
// the file has, checksum and all.
func flip(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(all, []byte(text))
	if at < 0 {
		t.Fatalf("%s has no %q", filepath.Base(path), text)
	}
	at += len(text)
	if _, err := f.WriteAt([]byte{all[at] ^ 1}, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// A batch that is damaged in the broker's file is fetched again. When it stays
// so, the run halts and names the place; everything before it is in the table.
// Mended, it goes on, and nothing is missing or there twice.
func TestDamagedBatch(t *testing.T) {
	w := newWorld(t, 1, nil)
	plain := w.newClient(kgo.ProducerBatchCompression(kgo.NoCompression()))
	for i := range 30 { // three batches of ten
		if i%10 == 0 {
			if err := plain.ProduceSync(w.ctx(), w.named(numbered(i, 10, 1))...).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.options = []string{"until: end"}
	path := w.segment()
	flip(t, path, `"name":"n15`)
	p := w.start()
	code := p.wait()
	for _, want := range []string{"topic " + w.topic + " partition 0 at offset 10 is damaged", "checksum", "a fetch is damaged; trying again"} {
		if code != 1 || !strings.Contains(p.Log(), want) {
			t.Fatalf("exit code %d, want 1 and %q:\n%s", code, want, p.Log())
		}
	}
	w.wantIDs(0, 9)
	w.wantCommitted(10)

	for try := 1; ; try++ { // damaged for a while only, as by a bad network card
		p = w.start()
		p.await("a fetch is damaged; trying again")
		flip(t, path, `"name":"n15`)
		if p.wait() == 0 || try == 5 {
			break
		}
		flip(t, path, `"name":"n15`) // a busy machine mended it when it was believed
	}
	if s := p.summary(); s.RowsRead != 20 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, 29)
	w.fsck()
}

// named are records with the topic's name.
func (w *world) named(records []*kgo.Record) []*kgo.Record {
	for _, r := range records {
		r.Topic = w.topic
	}
	return records
}

// A small topic may be large: limits.memory holds for what a batch unpacks to,
// although each batch here unpacks to more than all of it.
func TestMemoryOfPackedTopic(t *testing.T) {
	const batches, each, limit = 4, 1300, 64 << 20
	value := fmt.Appendf(nil, `{"id":%%d,"name":"x","more":"%s"}`, strings.Repeat("a", 64<<10))
	for name, codec := range map[string]kgo.CompressionCodec{"zstd": kgo.ZstdCompression(), "lz4": kgo.Lz4Compression()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, map[string]*string{"max.message.bytes": ptr("33554432")})
			p := w.newClient(kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(90<<20), kgo.MaxBufferedRecords(each), kgo.MaxBufferedBytes(200<<20))
			for b := range batches {
				records := make([]*kgo.Record, each)
				for i := range records {
					records[i] = &kgo.Record{Topic: w.topic, Value: bytes.Replace(value, []byte("%d"), fmt.Append(nil, b*each+i), 1)}
				}
				if err := p.ProduceSync(w.ctx(), records...).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			info, err := os.Stat(w.segment())
			if err != nil {
				t.Fatal(err)
			}
			unpacked := int64(batches * each * len(value))
			if info.Size()*50 > unpacked || unpacked < 4*limit {
				t.Fatalf("%d bytes unpack to %d: the test is not what it says", info.Size(), unpacked)
			}
			w.options = []string{"until: end"}
			w.extra = []string{"limits: {memory: 64MB}"}
			r := w.start()
			peak := r.peak()
			if s := r.summary(); s.RowsRead != batches*each {
				t.Errorf("%+v", s)
			}
			t.Logf("%d MB unpacked from %d KB; peak RSS %d MB", unpacked>>20, info.Size()>>10, peak>>20)
			if peak > limit {
				t.Errorf("peak RSS %d MB", peak>>20)
			}
			w.wantIDs(0, batches*each-1)
		})
	}
}
