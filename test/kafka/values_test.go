//go:build integration

package kafkatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Everything a message has beside its value can be a column; all codecs.
func TestMetadataAndCodecs(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, nil)
			w.columns = "[id bigint, k string, kt string, kp int, ko bigint, kts timestamp, 'kh map<string,string>']"
			w.options = []string{"until: end", "metadata: {key: k, topic: kt, partition: kp, offset: ko, timestamp: kts, headers: kh}"}
			c := w.newClient(kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
			at := time.UnixMilli(time.Now().UnixMilli()) // retention removes what is old
			var records []*kgo.Record
			for i := range 1000 {
				r := &kgo.Record{Topic: w.topic, Partition: int32(i % 2), Value: fmt.Appendf(nil, `{"id":%d,"ko":-1}`, i), Timestamp: at.Add(time.Duration(i) * time.Millisecond)}
				if i%3 > 0 {
					r.Key = fmt.Appendf(nil, "key%d", i)
				}
				if i == 7 {
					r.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}, {Key: "a", Value: []byte("2")}}
				}
				records = append(records, r)
			}
			if err := c.ProduceSync(w.ctx(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if s := w.run(); s.RowsRead != 1000 || s.RowsBad != 0 {
				t.Fatalf("%+v", s)
			}
			w.wantIDs(0, 999)
			for _, row := range w.rows(w.location()) {
				i := row["id"].(int64)
				var key any
				if i%3 > 0 {
					key = fmt.Sprintf("key%d", i)
				}
				if row["k"] != key || row["kt"] != w.topic || row["kp"] != i%2 || row["ko"] != i/2 || row["kts"] != (at.UnixMilli()+i)*1000 {
					t.Fatalf("%v", row)
				}
				if i == 7 && (fmt.Sprint(row["kh.key_value.key"]) != "[b a]" || fmt.Sprint(row["kh.key_value.value"]) != "[<nil> 2]") {
					t.Errorf("headers %v", row)
				}
			}
			w.fsck()
		})
	}
}

// csv and raw.
func TestOtherFormats(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.options = []string{"until: end"}
	w.format, w.columns = "csv", "[id bigint, name string]"
	w.produce(&kgo.Record{Value: []byte("1,one\n")}, &kgo.Record{Value: []byte(`2,"two, quoted"`)}, &kgo.Record{Value: []byte("3")})
	if s := w.run(); s.RowsRead != 3 || s.RowsBad != 1 {
		t.Errorf("csv: %+v", s)
	}
	w.wantIDs(1, 2)

	w = newWorld(t, 1, nil)
	w.options = []string{"until: end", "metadata: {offset: id}"}
	w.format, w.columns = "raw", "[id bigint, body binary]"
	w.produce(&kgo.Record{Value: []byte{0xff, 0}}, &kgo.Record{Value: []byte{}}, &kgo.Record{})
	if s := w.run(); s.RowsRead != 3 || s.RowsBad != 0 || s.RowsSkipped != 1 {
		t.Errorf("raw: %+v", s)
	}
	rows := w.rows(w.location())
	if len(rows) != 2 || rows[0]["body"] != "\xff\x00" || rows[1]["body"] != "" {
		t.Errorf("raw: %v", rows)
	}
}
