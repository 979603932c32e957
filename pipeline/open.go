package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/commit"
	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/coordinator"
	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/internal/place"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/maintenance"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/rolling"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/localfs"
	"github.com/hivesink/hivesink/storage/spool"
	"github.com/hivesink/hivesink/watermark"
	"github.com/hivesink/hivesink/writer"
)

// Options are what a pipeline needs beside its configuration. The zero value
// of every field but Config is what a process on a local disk wants.
type Options struct {
	Config  *config.Config
	Version string
	// FS, Index, NoLock, Now and Random replace the local file system, the
	// Badger index in state_dir, the locks, the clock and the random numbers.
	FS     storage.FS
	Index  kv.Store
	NoLock bool
	Now    func() int64 // wall clock, microseconds
	Random func() uint64
	// Inline runs the whole chain in the caller's goroutine: no timers, no
	// pool, no checkpoint but those asked for.
	Inline bool
	Events func(Event)

	smallBytes int64         // of writer.Options; for tests
	catalog    commit.Policy // in place of the metastore; for tests
}

// Pipeline is an open pipeline: the owner of its table.
type Pipeline struct {
	cfg      *config.Config
	c        *chain
	budget   *writer.Budget
	schema   *record.Schema
	closers  []io.Closer
	requests chan request
	cancel   context.CancelFunc
	stopped  chan struct{} // closed when the loop has ended
	failed   chan struct{} // closed with err set
	err      error
	inline   bool
	end      sync.Once
	released error     // of end
	first    sync.Once // the first record of this process
	Stats    Stats
}

// Schema is the schema of the records a writer of this pipeline takes.
func Schema(cfg *config.Config) (*record.Schema, error) {
	var identity []string
	for _, t := range cfg.Table.PartitionedBy {
		if t.Func == "identity" {
			identity = append(identity, t.Name)
		}
	}
	s, err := record.NewSchema(cfg.Table.Columns, identity)
	if err != nil {
		return nil, err
	}
	return s.Typed(record.OldTypes{Int96: cfg.Table.Parquet.Timestamps == config.TimestampsInt96,
		FixedDecimals: cfg.Table.Parquet.Decimals == config.DecimalsFixed}), nil
}

// TableRoot is the table's root directory: absolute, cleaned, with slashes.
func TableRoot(cfg *config.Config) string { return place.Root(cfg) }

// Open takes ownership of the table, recovers, and starts the chain. ctx ends
// the opening, not the pipeline.
func Open(ctx context.Context, o Options) (*Pipeline, error) {
	o.defaults()
	p := &Pipeline{cfg: o.Config, inline: o.Inline, requests: make(chan request), stopped: make(chan struct{}), failed: make(chan struct{})}
	if err := p.open(ctx, o); err != nil {
		p.release()
		return nil, err
	}
	if !o.Inline {
		loopCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		p.cancel = cancel
		p.c.pool = newWorkers(loopCtx, o.Config.Compaction.Parallelism, p.c.compact.Build)
		if err := p.c.recover(); err != nil {
			cancel()
			p.c.pool.close()
			p.release()
			return nil, err
		}
		go p.loop(loopCtx) // joined by Close and by fail
		return p, nil
	}
	p.c.pool = &inline{build: p.c.compact.Build}
	if err := p.c.recover(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (o *Options) defaults() {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMicro() }
	}
	if o.Random == nil {
		o.Random = RandomBits
	}
}

// openPlace connects to the storage of the table's location, unless the caller
// has brought one. lock: its lock decides who owns the table.
func (p *Pipeline) openPlace(ctx context.Context, o *Options) (lock bool, err error) {
	if o.FS != nil {
		return !o.NoLock, nil
	}
	at, err := place.Open(ctx, o.Config, storageEvents(o.Events))
	if err != nil {
		return false, err
	}
	p.closers = append(p.closers, at)
	if err := at.Probe(); err != nil {
		return false, err
	}
	o.FS = at.FS
	return at.Lock && !o.NoLock, nil
}

// storageEvents makes events of what a storage says of its servers.
func storageEvents(events func(Event)) place.Notify {
	if events == nil {
		return nil
	}
	return func(what string, err error) {
		if err == nil {
			events(Event{Kind: "storage-recovered", Path: what})
			return
		}
		events(Event{Kind: "storage-waiting", Path: what, Err: err})
	}
}

// RandomBits draws 64 bits that no other process draws.
func RandomBits() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

func (p *Pipeline) open(ctx context.Context, o Options) error {
	schema, err := Schema(o.Config)
	if err != nil {
		return fault.Wrap(fault.Config, "", fmt.Errorf("table.columns: %w", err))
	}
	p.schema = schema
	lock, err := p.openPlace(ctx, &o)
	if err != nil {
		return err
	}
	if o.Index == nil && !o.Inline {
		if o.Index, err = p.openState(o); err != nil {
			return err
		}
	}
	host, _ := os.Hostname() // for people only
	log, err := ledger.Open(ctx, ledger.Options{
		FS: o.FS, Table: TableRoot(o.Config), Pipeline: o.Config.Pipeline, Host: host, PID: os.Getpid(),
		Version: o.Version, StateDir: o.Config.StateDir, Index: o.Index, Lock: lock,
		Now: func() time.Time { return time.UnixMicro(o.Now()) }, Random: o.Random,
		History: ledger.Keep(time.Duration(o.Config.History)), Background: !o.Inline,
	})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, log)
	// What an interrupted `hivesink compact` has left, before anything is planned.
	if _, err := maintenance.Settle(o.FS, TableRoot(o.Config), log); err != nil {
		return err
	}
	return p.assemble(ctx, o, log)
}

// assemble builds the stages around an open ledger.
func (p *Pipeline) assemble(ctx context.Context, o Options, log *ledger.Ledger) error {
	cfg := o.Config
	eased := make(token, 1)
	stage, err := place.Staged(o.FS, cfg, eased.put)
	if err != nil {
		return err
	}
	p.budget = writer.NewBudget(int64(cfg.Limits.Memory)/4, cfg.Limits.OpenFiles)
	w, err := p.writerOptions(o, log)
	if err != nil {
		return err
	}
	w.FS = stage
	schemas, err := tableSchemas(p.schema)
	if err != nil {
		return err
	}
	location := func(table string) string { return compactor.SideLocation(TableRoot(cfg), table) }
	createdBy := "hivesink version " + o.Version
	policy := cfg.Compaction.Policy
	if !cfg.Compaction.Enabled {
		policy = config.PolicyOff
	}
	var uploads *ledger.Uploads
	if o := objects(o.FS); o != nil && policy == config.PolicyOff && room(stage) != nil {
		uploads = log.Uploads()
		w.Direct = &writer.Direct{Objects: o, Room: room(stage), Location: location, Note: uploads.Note}
	}
	copts := commit.Options{Trigger: cfg.Commit.Trigger, Delay: time.Duration(cfg.Commit.Delay), Late: cfg.Commit.Late,
		RegisterFirstFile: cfg.Commit.Register == config.RegisterFirstFile, Policies: cfg.Commit.Policies}
	if cfg.Commit.Trigger == config.TriggerPartitionTime {
		times, err := record.NewPartitioner(w.Schema, w.Transform, w.Zone, w.Extractor)
		if err != nil {
			return err
		}
		copts.Closes = times.ClosesNow
	}
	p.c = &chain{
		log: log, fs: o.FS, writer: w, uploads: uploads,
		compact: &compactor.Options{FS: stage, Objects: objects(o.FS), Room: room(stage), Staging: log.Staging(), Pipeline: cfg.Pipeline, TableID: log.State().Owner.Table,
			Epoch: log.Epoch(), Codec: cfg.Table.Compression, CreatedBy: createdBy,
			Syncs: syncs(o.Inline), OpenInputs: localfs.Each(cfg.Compaction.Parallelism, compactor.OpenInputs), Throttle: compactor.NewThrottle(int64(cfg.Compaction.BytesPerSecond)),
			Schema: func(t string) *parquetfile.Schema { return schemas[t] }, Location: location},
		plan: coordinator.Options{Policy: policy, FileSize: int64(cfg.Compaction.FileSize),
			MaxDelay: time.Duration(cfg.Compaction.MaxDelay).Microseconds(), MaxCheckpoints: cfg.Compaction.MaxCheckpoints,
			MaxInputs: maxInputs(cfg, schemas[ledger.MainTable])},
		core: commit.New(copts), intake: newIntake(log.State(), watermarkOptions(cfg)), now: o.Now, random: o.Random,
		stage: int64(cfg.Limits.Staging), flushes: encoders(o.Inline), events: o.Events,
		submitted: make(map[string]int), stats: &p.Stats, eased: eased, onPos: cfg.OnCheckpoint,
		newPartitions: cfg.Limits.NewPartitionsPerCheckpoint,
	}
	if s, ok := stage.(interface{ Waiting() int64 }); ok {
		p.c.spooled = s.Waiting
	}
	w.Known = p.c.intake.named
	p.c.staging = newStaging(log.State())
	p.c.restage()
	p.c.started = o.Now()
	policies, err := p.policies(ctx, o, log, location)
	if err != nil {
		return err
	}
	p.c.ann = newAnnouncer(commit.NewRunner(copts, policies))
	p.c.atOnce, p.c.ann.runner.AtOnce = atOnce, atOnce
	return nil
}

// maxInputs is how many parts a unit has at most: their footers, of which every
// column takes some, are in memory together. All workers get an eighth of
// limits.memory for them.
func maxInputs(cfg *config.Config, s *parquetfile.Schema) int {
	each := int64(footerBytes + columnBytes*s.NumLeaves())
	return int(max(leastInputs, int64(cfg.Limits.Memory)/8/int64(max(1, cfg.Compaction.Parallelism))/each))
}

const (
	footerBytes = 2 << 10
	columnBytes = 256
	leastInputs = 64
)

// tableSchemas compiles the schemas of the table and its side tables.
func tableSchemas(s *record.Schema) (map[string]*parquetfile.Schema, error) {
	main, err := parquetfile.NewSchema(s)
	if err != nil {
		return nil, fmt.Errorf("compile the table's schema: %w", err)
	}
	ds, err := writer.DeadSchema()
	if err != nil {
		return nil, err
	}
	dead, err := parquetfile.NewSchema(ds)
	if err != nil {
		return nil, fmt.Errorf("compile the dead-letter schema: %w", err)
	}
	return map[string]*parquetfile.Schema{ledger.MainTable: main, ledger.LateTable: main, ledger.DeadTable: dead}, nil
}

func (p *Pipeline) writerOptions(o Options, log *ledger.Ledger) (*writer.Options, error) {
	cfg := o.Config
	zone, err := time.LoadLocation(cfg.Table.TimeZone)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "use an IANA name such as Europe/Berlin", fmt.Errorf("table.time_zone: %w", err))
	}
	w := &writer.Options{
		FS: o.FS, Staging: log.Staging(), Epoch: log.Epoch(), Pipeline: cfg.Pipeline, TableID: log.State().Owner.Table,
		Schema: p.schema, Transform: cfg.Table.PartitionedBy, Zone: zone, Limits: pathLimits(o.FS, cfg),
		Codec: cfg.Table.Compression, HiddenCodec: hiddenCodec, SmallBytes: o.smallBytes, CreatedBy: "hivesink version " + o.Version,
		Final: !cfg.Compaction.Enabled || cfg.Compaction.Policy == config.PolicyOff,
		Rolling: rolling.Policy{Bytes: int64(cfg.Rolling.FileSize), Rows: cfg.Rolling.Rows,
			Age: time.Duration(cfg.Rolling.RolloverInterval), Inactivity: time.Duration(cfg.Rolling.InactivityInterval)},
		Budget: p.budget, EventTime: -1, LateDelay: -1, Late: cfg.Commit.Late,
		Bad:    &writer.BadPolicy{Policy: config.BadFail},
		Random: o.Random, Now: o.Now,
	}
	if x := cfg.Commit.TimeExtractor; x != nil {
		w.Extractor = &layout.TimeExtractor{Pattern: x.Pattern, Formatter: x.Formatter}
	}
	if cfg.Commit.Trigger == config.TriggerPartitionTime {
		w.LateDelay = time.Duration(cfg.Commit.Delay).Microseconds()
	}
	if s := cfg.Source; s != nil {
		w.Bad = &writer.BadPolicy{Policy: s.BadRecords.Policy, Limit: s.BadRecords.Limit}
		w.EventTime = slices.IndexFunc(p.schema.Arrow.Fields(), func(f arrow.Field) bool { return f.Name == s.EventTime.Column })
		w.OutOfOrderness = time.Duration(s.EventTime.OutOfOrderness).Microseconds()
		w.MaxFuture = time.Duration(s.EventTime.MaxFuture).Microseconds()
	}
	return w, w.Init()
}

// objects is the file system, when it is an object store.
func objects(fs storage.FS) storage.Objects {
	o, _ := fs.(storage.Objects)
	return o
}

// room is where a target waits that must be whole before it is sent.
func room(stage storage.FS) func() storage.Scratch {
	if s, ok := stage.(*spool.FS); ok {
		return s.Room
	}
	return nil
}

// encoders is how many part files are encoded at once at a checkpoint.
func encoders(inline bool) int {
	if inline {
		return 1
	}
	return max(2, runtime.GOMAXPROCS(0))
}

// syncs is how many small files and directories are made durable at once.
func syncs(inline bool) int {
	if inline {
		return 1
	}
	return 8
}

// hiddenCodec is the codec of part files that will be rewritten: measured,
// compressing them costs more than writing and reading the bytes
// (docs/decisions.md, 3).
const hiddenCodec = "none"

func watermarkOptions(cfg *config.Config) watermark.Options {
	var o watermark.Options
	if s := cfg.Source; s != nil {
		o.OutOfOrderness = time.Duration(s.EventTime.OutOfOrderness).Microseconds()
		o.IdleTimeout = time.Duration(s.EventTime.IdleTimeout).Microseconds()
		o.MaxFuture = time.Duration(s.EventTime.MaxFuture).Microseconds()
	}
	return o
}

// release gives everything back, last opened first.
func (p *Pipeline) release() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c.Close())
	}
	p.closers = nil
	return errors.Join(errs...)
}
