//go:build integration

// Package kafkatest reads topics of a real cluster with the real binary.
package kafkatest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/test/engines"
	"github.com/hivesink/hivesink/test/services"
)

var program string

func TestMain(m *testing.M) {
	path, remove, err := testproc.Build("")
	if err != nil {
		panic(err)
	}
	program = path
	code := m.Run()
	remove()
	os.Exit(code)
}

// world is a topic of a cluster and a pipeline that reads it.
type world struct {
	t       *testing.T
	cluster services.Kafka
	client  *kgo.Client // of the test: it produces and asks
	admin   *kadm.Client
	topic   string
	table   string // its name in the metastore
	dir     string
	format  string
	columns string
	options []string // lines under source.kafka
	source  []string // lines under source
	extra   []string // lines of their own

	interval string // of checkpoints
}

// unique and worlds make names of topics.
var (
	unique = time.Now().Format("150405")
	worlds int
)

func newWorld(t *testing.T, partitions int32, configs map[string]*string) *world {
	t.Helper()
	return newWorldOn(t, services.KafkaSingle, partitions, configs)
}

func newWorldOn(t *testing.T, c services.Kafka, partitions int32, configs map[string]*string) *world {
	t.Helper()
	w := emptyWorld(t, c)
	w.createTopic(w.topic, partitions, configs)
	return w
}

// coordinator is the broker that has the group's offsets, and the two others. To
// see what a run has committed, the test must not take it down.
func (w *world) coordinator() (id, other, another int32) {
	w.t.Helper()
	eventually(w.t, "the group's coordinator", func() error {
		c := w.admin.FindGroupCoordinators(w.ctx(), w.topic)
		id = c[w.topic].NodeID
		return c.Error()
	})
	return id, id%3 + 1, (id+1)%3 + 1
}

// createAt makes the topic with a partition for each list of brokers, of which
// the first leads.
func (w *world) createAt(configs map[string]string, partitions ...[]int32) {
	w.t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = w.topic, -1, -1
	for i, brokers := range partitions {
		p := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		p.Partition, p.Replicas = int32(i), brokers
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, p)
	}
	for name, value := range configs {
		o := kmsg.NewCreateTopicsRequestTopicConfig()
		o.Name, o.Value = name, kmsg.StringPtr(value)
		topic.Configs = append(topic.Configs, o)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	res, err := req.RequestWith(w.ctx(), w.client)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].ErrorCode)
	}
	if err != nil {
		w.t.Fatalf("is the service up? go run ./test/services/cmd up %s: %v", w.cluster.Service, err)
	}
}

// emptyWorld has a name for a topic that is not there yet.
func emptyWorld(t *testing.T, c services.Kafka) *world {
	t.Helper()
	w := &world{t: t, cluster: c, dir: t.TempDir(), format: "json", columns: "[id bigint, name string]"}
	w.client = w.newClient()
	w.admin = kadm.NewClient(w.client)
	worlds++
	w.topic = fmt.Sprintf("%s-%s-%d", strings.ToLower(strings.NewReplacer("/", "-", " ", "-", ",", "-").Replace(t.Name())), unique, worlds)
	w.table = fmt.Sprintf("t%s_%d_%d", unique, os.Getpid(), worlds)
	return w
}

func (w *world) createTopic(name string, partitions int32, configs map[string]*string) {
	w.t.Helper()
	if _, err := w.admin.CreateTopic(w.ctx(), partitions, -1, configs, name); err != nil {
		w.t.Fatalf("is the service up? go run ./test/services/cmd up %s: %v", w.cluster.Service, err)
	}
}

func (w *world) newClient(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.cluster.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.TransactionTimeout(10 * time.Minute)}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// reconnect takes new clients, which know nothing of old leaders and topics.
func (w *world) reconnect() {
	w.t.Helper()
	w.client.Close()
	w.client = w.newClient()
	w.admin = kadm.NewClient(w.client)
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// produce sends records and waits until they are there.
func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	for _, r := range records {
		if r.Topic == "" {
			r.Topic = w.topic
		}
	}
	if err := w.client.ProduceSync(w.ctx(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// numbered are n records with ids from first, over partitions in turns.
func numbered(first, n int, partitions int32) []*kgo.Record {
	out := make([]*kgo.Record, n)
	for i := range out {
		id := first + i
		out[i] = &kgo.Record{Partition: int32(id) % partitions, Value: fmt.Appendf(nil, `{"id":%d,"name":"n%d"}`, id, id)}
	}
	return out
}

// config writes the configuration and returns its path.
func (w *world) config() string {
	w.t.Helper()
	lines := append([]string{
		"pipeline: p",
		"state_dir: " + filepath.Join(w.dir, "state"),
		"table: {database: kafka, name: " + w.table + ", location: " + w.location() + ", columns: " + w.columns + "}",
		engines.Announce(""),
		"checkpoint: {interval: " + cmp.Or(w.interval, "300ms") + "}",
		"compaction: {policy: checkpoint}",
		"source:",
		"  format: " + w.format,
	}, w.source...)
	lines = append(lines, "  kafka:")
	all := strings.Join(w.options, "\n")
	if !strings.Contains(all, "brokers:") {
		lines = append(lines, "    brokers: ["+strings.Join(w.cluster.Brokers(), ", ")+"]")
	}
	if !strings.Contains(all, "topics:") && !strings.Contains(all, "topic_pattern:") {
		lines = append(lines, "    topics: ["+w.topic+"]")
	}
	if !strings.Contains(all, "group:") {
		lines = append(lines, "    group: "+w.topic)
	}
	for _, o := range w.options {
		lines = append(lines, "    "+o)
	}
	lines = append(lines, w.extra...)
	path := filepath.Join(w.dir, "sink.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) location() string { return filepath.Join(w.dir, "table") }

// process is a run of the binary.
type process struct {
	*testproc.Process
	t *testing.T
}

// start starts `hivesink run`.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	return &process{t: w.t, Process: testproc.Start(w.t, testproc.Command{Path: program, Deadline: patience,
		Args: append([]string{"run", "-v", "--json", "-c", w.config()}, args...),
		Ended: func(r testproc.Result) {
			if err := services.Leaks("the output", r.Out+r.Err); err != nil {
				w.t.Error(err)
			}
		}})}
}

// await waits until the log has a text.
func (p *process) await(text string) {
	p.t.Helper()
	says := func() bool { return strings.Contains(p.Log(), text) }
	if !p.Until(p.t, "the log to say "+text, says) && !says() {
		p.t.Fatalf("the run ended without %q: %v", text, p.End())
	}
}

// wait waits for the end and returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	return p.Wait(p.t).Code
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Send(s); err != nil {
		p.t.Fatal(err)
	}
}

// peak looks at the memory of a run until it has ended, and returns the most that
// it had, in bytes. (What the kernel says of an ended process counts the memory
// of the one that started it too.)
func (p *process) peak() (most int64) {
	p.t.Helper()
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid())) // it may end in between
		if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
			var kb int64
			if _, err := fmt.Sscan(after, &kb); err != nil {
				p.t.Fatal(err)
			}
			most = max(most, kb<<10)
		}
		select {
		case <-p.Done():
			if most == 0 {
				p.t.Fatal("nothing is known of the run's memory")
			}
			return most
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// stop ends the run by SIGTERM and returns its summary.
func (p *process) stop() summary {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	return p.summary()
}

type summary struct {
	RowsRead    int64 `json:"rows_read"`
	RowsVisible int64 `json:"rows_visible"`
	RowsBad     int64 `json:"rows_bad"`
	RowsSkipped int64 `json:"rows_skipped"`
	RowsLate    int64 `json:"rows_late"`
}

// summary is what a run that went well ends with.
func (p *process) summary() summary {
	p.t.Helper()
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit code %d:\n%s", code, p.Log())
	}
	var s summary
	if err := json.Unmarshal([]byte(p.End().Out), &s); err != nil {
		p.t.Fatalf("%v: %s", err, p.End().Out)
	}
	return s
}

// run runs to the end of a bounded source.
func (w *world) run(args ...string) summary {
	w.t.Helper()
	return w.start(args...).summary()
}

// fsck proves that every accepted row is there once.
func (w *world) fsck() {
	w.t.Helper()
	out, err := exec.Command(program, "fsck", "-c", w.config()).CombinedOutput()
	if err != nil {
		w.t.Errorf("fsck: %v\n%s", err, out)
	}
}

// patience is how long an event may take on a machine that is busy with others.
const patience = 4 * time.Minute

func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("waited in vain for %s: %v", what, err)
}

func ptr(s string) *string { return &s }

// committed checks the group's offsets, by partition.
func (w *world) committed(want ...int64) error {
	got, err := w.admin.FetchOffsets(w.ctx(), w.topic)
	if err != nil {
		return err
	}
	for n, at := range want {
		o, ok := got.Lookup(w.topic, int32(n))
		if !ok || o.At != at {
			return fmt.Errorf("partition %d: the group has offset %d, want %d", n, o.At, at)
		}
	}
	return nil
}

// allCommitted is how many messages the group's offsets are behind, of all
// partitions together.
func (w *world) allCommitted() (n int64, err error) {
	got, err := w.admin.FetchOffsets(w.ctx(), w.topic)
	if err != nil {
		return 0, err
	}
	for _, o := range got[w.topic] {
		n += max(0, o.At)
	}
	return n, nil
}

var kafkaThree = services.KafkaThree

func home(t *testing.T) *services.Home {
	t.Helper()
	h, err := services.DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// inSync waits until every partition of the topic has all its replicas.
func (w *world) inSync() {
	w.t.Helper()
	eventually(w.t, "all replicas to be in sync", func() error {
		l, err := w.admin.ListTopics(w.ctx(), w.topic)
		if err != nil {
			return err
		}
		for n, p := range l[w.topic].Partitions {
			if len(p.ISR) < len(p.Replicas) || p.Leader < 0 {
				return fmt.Errorf("partition %d: %d of %d replicas", n, len(p.ISR), len(p.Replicas))
			}
		}
		return l[w.topic].Err
	})
}
