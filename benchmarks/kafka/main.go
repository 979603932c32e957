// Command kafka measures what reading from Kafka costs beside reading files: the
// same rows as NDJSON files, as JSON messages and as Avro messages, each read to
// its end by bin/hivesink into a table of its own. It needs the services kafka
// and registry (go run ./test/services/cmd up kafka registry).
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

const partitions = 8

// result is one way of reading the rows.
type result struct {
	Source      string  `json:"source"`
	Codec       string  `json:"codec"`
	Rows        int     `json:"rows"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	WallSeconds float64 `json:"wall_seconds"`
	MaxRSSMB    int64   `json:"max_rss_mb"`
	RowsPerCPU  int64   `json:"rows_per_cpu_second"`
	OfFiles     float64 `json:"of_files"` // rows per CPU second, files are 1
}

func main() {
	rows := flag.Int("rows", 2_000_000, "rows")
	binary := flag.String("hivesink", "bin/hivesink", "the binary")
	out := flag.String("json", "", "where results go besides")
	flag.Parse()
	if err := run(*rows, *binary, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench kafka:", err)
		os.Exit(1)
	}
}

func run(rows int, program, out string) error {
	dir, err := os.MkdirTemp("", "bench-kafka")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeFiles(dir, rows); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaSingle.Brokers()...))
	if err != nil {
		return err
	}
	defer client.Close()
	id, err := register()
	if err != nil {
		return err
	}
	var results []result
	measure := func(name, codec, source string) error {
		r, err := measureRun(dir, program, name+"-"+codec, source)
		if err != nil {
			return err
		}
		r.Source, r.Codec, r.Rows = name, codec, rows
		r.RowsPerCPU = int64(float64(rows) / r.CPUSeconds)
		results = append(results, r)
		r.OfFiles = float64(r.RowsPerCPU) / float64(results[0].RowsPerCPU)
		results[len(results)-1] = r
		fmt.Printf("%-12s %-5s %10d rows per CPU second  %.2f of files  %5.1f s wall  %4d MB\n", name, codec, r.RowsPerCPU, r.OfFiles, r.WallSeconds, r.MaxRSSMB)
		return nil
	}
	if err := measure("files", "none", "source: {format: json, readers: 2, files: {paths: [\""+dir+"/in-*.ndjson\"]}}"); err != nil {
		return err
	}
	for _, codec := range []string{"none", "lz4", "zstd"} {
		for _, format := range []string{"json", "avro"} {
			topic := fmt.Sprintf("bench-%s-%s-%d", format, codec, time.Now().UnixNano())
			if err := produce(client, topic, format, codec, rows, id); err != nil {
				return err
			}
			err := measure("kafka "+format, codec, fmt.Sprintf("source: {format: %s, readers: 2, kafka: {brokers: [\"%s\"], topics: [%s], until: end, schema_registry: {url: \"%s\"}}}",
				format, services.KafkaSingle.Brokers()[0], topic, services.RegistryURL()))
			if _, derr := kadm.NewClient(client).DeleteTopic(context.Background(), topic); err == nil {
				err = derr
			}
			if err != nil {
				return err
			}
		}
	}
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

var countries = []string{"DE", "FR", "US", "JP", "BR", "IN", "ZA", "AU"}

func appendJSON(b []byte, i int) []byte {
	return fmt.Appendf(b, `{"id":%d,"ts":"2026-01-31T%02d:%02d:%02dZ","user":"user-%d","country":"%s","amount":%d.%02d,"score":%d.5,"url":"https://example.com/item/%d?q=%d"}`,
		i, i/3600%24, i/60%60, i%60, i*7919%100_000, countries[i%len(countries)], i%1000, i%100, i%77, i*31%50_000, i%977)
}

const schema = `{"type":"record","name":"Ev","fields":[{"name":"id","type":"long"},{"name":"ts","type":{"type":"long","logicalType":"timestamp-millis"}},
{"name":"user","type":"string"},{"name":"country","type":"string"},{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
{"name":"score","type":"double"},{"name":"url","type":"string"}]}`

func appendAvro(b []byte, i int, id int32) []byte {
	text := func(s string) { b = append(binary.AppendVarint(b, int64(len(s))), s...) }
	b = binary.BigEndian.AppendUint32(append(b, 0), uint32(id))
	b = binary.AppendVarint(b, int64(i))
	b = binary.AppendVarint(b, 1_769_817_600_000+int64(i%86_400)*1000)
	text(fmt.Sprintf("user-%d", i*7919%100_000))
	text(countries[i%len(countries)])
	b = append(binary.AppendVarint(b, 4), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[len(b)-4:], uint32(i%1000*100+i%100))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint64(b[len(b)-8:], uint64(0x4040000000000000+i%77<<40))
	text(fmt.Sprintf("https://example.com/item/%d?q=%d", i*31%50_000, i%977))
	return b
}

func writeFiles(dir string, rows int) error {
	for p := range partitions {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("in-%d.ndjson", p)))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		var b []byte
		for i := p; i < rows; i += partitions {
			b = append(appendJSON(b[:0], i), '\n')
			w.Write(b) //nolint:errcheck // Flush has it
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func register() (int32, error) {
	body, err := json.Marshal(map[string]any{"schema": schema})
	if err != nil {
		return 0, err
	}
	resp, err := http.Post(services.RegistryURL()+"/subjects/bench-value/versions", "application/vnd.schemaregistry.v1+json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var a struct{ ID int32 }
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return 0, err
	}
	if a.ID == 0 {
		return 0, fmt.Errorf("the registry answers %s and no id", resp.Status)
	}
	return a.ID, nil
}

func produce(client *kgo.Client, topic, format, codec string, rows int, id int32) error {
	ctx := context.Background()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return err
	}
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	p, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaSingle.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[codec]), kgo.ProducerLinger(20*time.Millisecond), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return err
	}
	defer p.Close()
	var failed error
	for i := range rows {
		var v []byte
		if format == "json" {
			v = appendJSON(nil, i)
		} else {
			v = appendAvro(nil, i, id)
		}
		p.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: v}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	return failed
}

func measureRun(dir, program, name, source string) (result, error) {
	name = strings.ReplaceAll(name, " ", "-")
	config := filepath.Join(dir, name+".yaml")
	text := "pipeline: bench\nstate_dir: " + filepath.Join(dir, name+"-state") + "\n" +
		"table: {name: t, location: " + filepath.Join(dir, name) + ", columns: [id bigint, ts timestamp, user string, country string, \"amount decimal(10,2)\", score double, url string]}\n" +
		source + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return result{}, err
	}
	cmd := exec.Command(program, "run", "--json", "-c", config)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%s: %w\n%s", name, err, errs.String())
	}
	var s struct {
		Read int64 `json:"rows_read"`
		Bad  int64 `json:"rows_bad"`
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil || s.Bad > 0 {
		return result{}, fmt.Errorf("%s: %d bad rows: %v", name, s.Bad, err)
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	os.RemoveAll(filepath.Join(dir, name))
	return result{CPUSeconds: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		WallSeconds: time.Since(began).Seconds(), MaxRSSMB: u.Maxrss >> 10}, nil
}
