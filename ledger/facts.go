package ledger

import "math"

// Sum is an audit counter: how many rows, and the sum (mod 2^64) of the hash
// of each row number. Sums add through any merge.
type Sum struct {
	Rows int64  `json:"rows"`
	Hash uint64 `json:"hash"`
}

// Add returns s plus o.
func (s Sum) Add(o Sum) Sum { return Sum{s.Rows + o.Rows, s.Hash + o.Hash} }

// Sub returns s minus o.
func (s Sum) Sub(o Sum) Sum { return Sum{s.Rows - o.Rows, s.Hash - o.Hash} }

// Row adds one row number.
func (s *Sum) Row(n int64) { s.Rows++; s.Hash += RowHash(n) }

// RowHash is the 64-bit hash of a row number (the finaliser of splitmix64).
func RowHash(n int64) uint64 {
	x := uint64(n) + 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// NoWatermark is the watermark of a source partition that has seen no event
// time yet.
const NoWatermark = math.MinInt64

// Table names of a part or partition: the table itself and its side tables.
const (
	MainTable = ""     // the table
	DeadTable = "dead" // <name>_dead: bad records
	LateTable = "late" // <name>_late: late records, policy side
)

// Source is the state of one source partition. All values are absolute.
type Source struct {
	Position     string `json:"position"`
	NextRow      int64  `json:"next_row"`
	Watermark    int64  `json:"watermark"` // microseconds since 1970; NoWatermark
	Accepted     Sum    `json:"accepted"`
	DeadLettered Sum    `json:"dead_lettered"`
	Dropped      Sum    `json:"dropped"`
	Skipped      Sum    `json:"skipped"`
	Ended        bool   `json:"ended,omitempty"`
}

// Range is what a file holds of one source partition.
type Range struct {
	First int64 `json:"first"` // row numbers, for people: rows in between may lie elsewhere
	Last  int64 `json:"last"`
	Sum
}

// Part is a part file named by a checkpoint: durable and hidden. It is a whole
// Parquet file; with Bundle set it shares the file Name with other parts, of
// any partition and the same checkpoint, and is the bytes [Offset,
// Offset+Bytes) of it: a slice.
type Part struct {
	ID        string `json:"id"` // leaf id: 16 hex digits, unique for ever
	Table     string `json:"table,omitempty"`
	Partition string `json:"partition"` // path, "" when the table has no partition columns
	Epoch     uint64 `json:"epoch"`     // whose staging directory it lies in
	Name      string `json:"name"`      // file name in that directory
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
	// Upload: on an object store, the part is not staged. Its bytes are in this
	// upload to the name Name in its partition's directory, and its checkpoint
	// has the unit that completes the upload (T14).
	Upload     string `json:"upload,omitempty"`
	Bundle     bool   `json:"bundle,omitempty"`
	Offset     int64  `json:"offset,omitempty"`
	MinTime    int64  `json:"min_time,omitempty"` // event time, microseconds
	MaxTime    int64  `json:"max_time,omitempty"`
	FirstWrite int64  `json:"first_write"`      // wall clock of its oldest row, microseconds
	Closes     int64  `json:"closes,omitempty"` // end of the partition's period, microseconds; 0: no known period
	Schema     string `json:"schema"`
	Codec      string `json:"codec"`
	Full       bool   `json:"full,omitempty"` // has at least one full-size row group
	// Final: it has the encoding of a published file throughout, and may become
	// one as it is. Parts of old logs do not say so and are rewritten.
	Final      bool   `json:"final,omitempty"`
	Checkpoint uint64 `json:"checkpoint"`
	// Sources is what the part holds of each source partition.
	Sources map[string]Range `json:"sources"`
}

// Ready is the part of a unit that needs nothing more than that its upload is
// completed; nil for any other unit.
func (s *State) Ready(u *Unit) *Part {
	if len(u.Inputs) != 1 {
		return nil
	}
	if p := s.Parts[u.Inputs[0]]; p != nil && p.Upload != "" {
		return p
	}
	return nil
}

// Unit modes.
const (
	ModePublish = "publish" // make the one input visible as it is
	ModeCopy    = "copy"    // row groups byte for byte
	ModeMerge   = "merge"   // large row groups copied, pages of small ones moved
	ModeRewrite = "rewrite" // decode and encode
)

// Unit is a compaction unit: inputs to be merged into one published target.
// Its target name is drawn when it is planned; a redo uses the same.
type Unit struct {
	ID         string   `json:"id"`
	Table      string   `json:"table,omitempty"`
	Partition  string   `json:"partition"`
	Inputs     []string `json:"inputs"` // part ids, in merge order
	Target     string   `json:"target"` // file name in the partition directory
	Mode       string   `json:"mode"`
	Reason     string   `json:"reason"` // why now, and why this mode
	TargetSize int64    `json:"target_size"`
	Checkpoint uint64   `json:"checkpoint"` // highest checkpoint among the inputs
	Rows       int64    `json:"rows"`
	// Published is set once the target is visible and the log says so; what
	// remains to be done is deleting the inputs.
	Published bool `json:"published,omitempty"`
	// Uploads are the uploads of the target that may have been completed, on an
	// object store: set by Record.Uploading.
	Uploads []string `json:"uploads,omitempty"`
}

// Upload is the fact that an upload of a unit's target may be completed from
// now on. Whoever takes the table over aborts it before the unit is done again.
type Upload struct {
	Unit string `json:"unit"`
	ID   string `json:"id"`
}

// Published is the fact that a unit's target is visible.
type Published struct {
	Unit    string           `json:"unit"`
	Table   string           `json:"table,omitempty"`
	Path    string           `json:"path"` // partition path + "/" + file name
	Mode    string           `json:"mode"` // the mode that was used in the end
	Rows    int64            `json:"rows"`
	Bytes   int64            `json:"bytes"`
	Leaves  []string         `json:"leaves"` // leaf ids of the parts merged into it
	Sources map[string]Range `json:"sources"`
	Time    int64            `json:"time"` // wall clock, microseconds
}

// Replacement is the fact that published files of a partition are to be
// replaced, all at once, by others that hold the same rows: compaction of a
// table at rest. It is appended when the new files are durable and before
// anything of it is visible; Record.Replaced says that it has been done,
// Record.ReplacementsEnded that nothing of it is left to do.
type Replacement struct {
	ID           string         `json:"id"` // the unit
	Table        string         `json:"table,omitempty"`
	Partition    string         `json:"partition"`
	Epoch        uint64         `json:"epoch"`   // whose staging directory it is built in
	Removed      []string       `json:"removed"` // file names in the partition directory
	RemovedBytes int64          `json:"removed_bytes"`
	Added        []ReplacedFile `json:"added"`
	// Done is set by Record.Replaced: the new files are visible.
	Done bool `json:"done,omitempty"`
}

// ReplacedFile is a file that a replacement makes visible.
type ReplacedFile struct {
	Name    string           `json:"name"`
	Mode    string           `json:"mode"`
	Rows    int64            `json:"rows"`
	Bytes   int64            `json:"bytes"`
	Leaves  []string         `json:"leaves"`
	Sources map[string]Range `json:"sources"`
}

// Rows is the number of rows of the new files, which is that of the old ones.
func (r *Replacement) Rows() (n int64) {
	for i := range r.Added {
		n += r.Added[i].Rows
	}
	return n
}

// Announced is the fact that a partition's policies have run. Totals are
// absolute.
type Announced struct {
	Table     string `json:"table,omitempty"`
	Partition string `json:"partition"`
	Number    int64  `json:"number"`             // 1 for the first announcement
	Register  bool   `json:"register,omitempty"` // register: first-file: only the catalogue has learned of it
	Cut       uint64 `json:"cut"`                // every file of checkpoints <= Cut is in
	Files     int64  `json:"files"`
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
	Time      int64  `json:"time"`
}

// Partition is the state of one partition. It exists from the first
// checkpoint that names a part of it, for ever.
type Partition struct {
	Table          string `json:"table,omitempty"`
	Path           string `json:"path"`
	Closes         int64  `json:"closes,omitempty"`
	Files          int64  `json:"files"` // published
	Rows           int64  `json:"rows"`
	Bytes          int64  `json:"bytes"`
	FirstPublished int64  `json:"first_published,omitempty"` // of what is not announced yet, wall clock, microseconds
	Announced      int64  `json:"announced,omitempty"`       // number of the last announcement
	AnnouncedCut   uint64 `json:"announced_cut,omitempty"`
	AnnouncedFiles int64  `json:"announced_files,omitempty"`
	AnnouncedRows  int64  `json:"announced_rows,omitempty"`
	AnnouncedBytes int64  `json:"announced_bytes,omitempty"`
	AnnouncedTime  int64  `json:"announced_time,omitempty"`
	// Registered: the catalogue knows the partition, announced or only
	// registered (Announced.Register).
	Registered bool `json:"registered,omitempty"`
}

// Unannounced says whether the partition has published files that no
// announcement covers.
func (p *Partition) Unannounced() bool { return p.Files > p.AnnouncedFiles }

// Epoch is the fact that a process owns the table from here on.
type Epoch struct {
	Pipeline string            `json:"pipeline"`
	Table    string            `json:"table_id"` // random, drawn at the first epoch
	Host     string            `json:"host"`
	PID      int               `json:"pid"`
	Version  string            `json:"version"`
	Identity map[string]string `json:"identity,omitempty"`
	Dir      string            `json:"dir"` // the 64 random bits of its staging directory, hex
}

// Checkpoint is the fact that everything up to the given positions is durable.
type Checkpoint struct {
	Number    uint64            `json:"number"`
	Sources   map[string]Source `json:"sources,omitempty"` // those that moved
	Parts     []Part            `json:"parts,omitempty"`
	Units     []Unit            `json:"units,omitempty"` // policy off: a publish unit per part
	Watermark int64             `json:"watermark"`       // of the pipeline, at this cut; NoWatermark
	// InputEnded: every source partition has ended, and with at_end: complete
	// every trigger has passed.
	InputEnded bool `json:"input_ended,omitempty"`
	// Complete: the end of input ends every trigger (at_end: complete).
	Complete bool `json:"complete,omitempty"`
}

// Record is one log record. Facts of several steps may share one; within a
// record they apply in the order of the fields.
type Record struct {
	Version  int    `json:"v"`
	Seq      uint64 `json:"seq"`
	Epoch    uint64 `json:"epoch"`
	Nonce    string `json:"nonce"`
	Time     int64  `json:"time"`     // wall clock, microseconds, for people
	Previous string `json:"previous"` // checksum of the record before

	NewEpoch      *Epoch      `json:"new_epoch,omitempty"`
	Checkpoint    *Checkpoint `json:"checkpoint,omitempty"`
	GivenUp       []string    `json:"given_up,omitempty"` // unit ids; Plan has units for their inputs (T15)
	Plan          []Unit      `json:"plan,omitempty"`
	Uploading     []Upload    `json:"uploading,omitempty"`
	Published     []Published `json:"published,omitempty"`
	InputsDeleted []string    `json:"inputs_deleted,omitempty"` // unit ids
	Announced     []Announced `json:"announced,omitempty"`
	// Compaction at rest: planned, visible, ended (unit ids).
	Replacing         []Replacement `json:"replacing,omitempty"`
	Replaced          []string      `json:"replaced,omitempty"`
	ReplacementsEnded []string      `json:"replacements_ended,omitempty"`

	Released bool `json:"released,omitempty"`
}

// State is what the log says as a whole: work in flight, partitions, source
// partitions. It never grows with the number of files in the table.
type State struct {
	Version  int    `json:"v"`
	Seq      uint64 `json:"seq"`      // last record applied
	Checksum string `json:"checksum"` // of that record
	Epoch    uint64 `json:"epoch"`
	Owner    Epoch  `json:"owner"`

	Checkpoint uint64                `json:"checkpoint"` // number of the last one
	Watermark  int64                 `json:"watermark"`
	InputEnded bool                  `json:"input_ended,omitempty"`
	Complete   bool                  `json:"complete,omitempty"`
	Released   bool                  `json:"released,omitempty"`
	Sources    map[string]*Source    `json:"sources"`
	Parts      map[string]*Part      `json:"parts"`      // by id; named by a checkpoint, inputs not yet deleted
	Units      map[string]*Unit      `json:"units"`      // planned, inputs not yet deleted
	Partitions map[string]*Partition `json:"partitions"` // by PartitionKey
	// Replacements are those that have not ended, by id.
	Replacements map[string]*Replacement `json:"replacements,omitempty"`
	// Totals over the life of the table.
	PublishedFiles int64 `json:"published_files"`
	PublishedRows  int64 `json:"published_rows"`
	PartFiles      int64 `json:"part_files"` // parts ever named by a checkpoint

	// unannounced are the keys of the partitions of which Unannounced is true.
	// It follows from Partitions; Apply keeps it, so that who looks for work
	// need not look at every partition.
	unannounced map[string]struct{}
}

// Unannounced are the keys of the partitions that have published files which
// no announcement covers, sorted.
func (s *State) Unannounced() []string { return sortedKeys(s.unannounced) }

// derive finds what follows from a state that was read.
func (s *State) derive() {
	s.unannounced = make(map[string]struct{})
	for key, p := range s.Partitions { // each by itself: the order does not matter
		s.watch(key, p)
	}
}

// watch keeps s.unannounced after a change of one partition; nil: it is gone.
func (s *State) watch(key string, p *Partition) {
	if p != nil && p.Unannounced() {
		s.unannounced[key] = struct{}{}
	} else {
		delete(s.unannounced, key)
	}
}

// PartitionKey is the key of a partition in State.Partitions.
func PartitionKey(table, path string) string { return table + ":" + path }
