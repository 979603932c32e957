package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/localfs"
)

// filePrefix begins the ID of every file; the absolute path follows.
const filePrefix = "file:"

type files struct {
	patterns []string
	moved    map[string]string // by ID: the path at which the file is now; set by Splits
	o        Options
	form     recordFormat
	total    atomic.Int64 // bytes on disk of what Splits listed, less what was read before
	read     atomic.Int64 // bytes read from disk
}

// NewFiles reads the files that patterns name (see expand for the rules), each
// as one split, as far as they go now. Compression is told by name (.gz, .zst,
// .zstd) and first bytes.
func NewFiles(patterns []string, o Options) (Source, error) {
	o = o.withDefaults()
	form, err := o.recordFormat()
	if err != nil {
		return nil, err
	}
	return &files{patterns: patterns, o: o, form: form}, nil
}

// Splits implements Source. Errors: class config when a pattern matches
// nothing, class halt for what cannot be read or continued.
func (s *files) Splits(ctx context.Context, known map[string]ledger.Source) ([]Split, error) {
	all, err := expand(ctx, s.o.WorkingDir, s.patterns)
	if err != nil {
		return nil, err
	}
	single := once(all, known)
	renamed := s.follow(single, known)
	if err := s.vanished(all, known); err != nil {
		return nil, err
	}
	var splits []Split
	var total int64
	for _, f := range single {
		id := filePrefix + f.path
		if was, ok := renamed[f.path]; ok {
			if id = was; s.moved[id] != f.path {
				continue // another link to a file that is read once
			}
		}
		from, ok := known[id]
		p, err := parsePosition(f.name, from)
		if err != nil {
			return nil, err
		}
		if ok && p.End && f.size == p.Size { // S6: only the fingerprint is read
			if err := checkFile(f.path, f.name, p); err != nil {
				return nil, err
			}
			continue
		}
		splits = append(splits, Split{ID: id, Name: f.name, Size: f.size})
		total += f.size
	}
	s.total.Store(total)
	return splits, nil
}

// follow finds files that were read under another name, and notes where each of
// them is to be read: nowhere else than under its old name, if that is named too.
func (s *files) follow(all []found, known map[string]ledger.Source) map[string]string {
	renamed := renamedFiles(all, known)
	s.moved = make(map[string]string, len(renamed))
	for _, f := range all {
		if id, ok := renamed[f.path]; ok && s.moved[id] == "" {
			s.moved[id] = f.path
		}
	}
	for _, f := range all {
		if id := filePrefix + f.path; s.moved[id] != "" {
			s.moved[id] = f.path
		}
	}
	return renamed
}

// vanished halts for a file that was read in part and is gone, although the
// patterns still name it (S7).
func (s *files) vanished(all []found, known map[string]ledger.Source) error {
	var gone []string
	for id, from := range known {
		path, isFile := strings.CutPrefix(id, filePrefix)
		if !isFile || from.Position == "" {
			continue
		}
		if p, err := parsePosition(path, from); err != nil || p.End || s.moved[id] != "" {
			continue // a position nobody resumes from, or one of a file that is elsewhere now
		}
		there := slices.ContainsFunc(all, func(f found) bool { return f.path == path })
		named := slices.ContainsFunc(s.patterns, func(p string) bool { return matches(s.o.WorkingDir, p, path) })
		if named && !there {
			gone = append(gone, path)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	return fault.New(fault.Halt, "put it back, or change source.files.paths so that it is not named any more",
		"resume %s: it was read in part and is gone", strings.Join(gone, ", "))
}

// checkFile opens a file for its fingerprint only.
func checkFile(path, name string, p position) error {
	f, err := openFile(path, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return checkFingerprint(f, name, p)
}

func openFile(path, name string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Halt, "make it readable, or narrow source.files.paths", "read %s: %w", name, err)
	}
	return f, nil
}

// checkFingerprint halts when a file begins otherwise than when it was first
// seen, or is shorter (S4).
func checkFingerprint(f *os.File, name string, p position) error {
	const remedy = "give a new file a new name, or put the old one back"
	info, err := f.Stat()
	if err != nil {
		return fault.New(fault.Halt, "", "read %s: %w", name, err)
	}
	if info.Size() < p.Size {
		return fault.New(fault.Halt, remedy, "resume %s: it has %d bytes, fewer than the %d it had when it was read before", name, info.Size(), p.Size)
	}
	start := make([]byte, p.N)
	if _, err := f.ReadAt(start, 0); err != nil && !errors.Is(err, io.EOF) {
		return fault.New(fault.Halt, "", "read the start of %s: %w", name, err)
	}
	if h := fingerprint(start); p.N > 0 && h != p.Hash {
		return fault.New(fault.Halt, remedy, "resume %s: it is another file than the one read before: the hash of its first %d bytes was %s and is %s", name, p.N, p.Hash, h)
	}
	return nil
}

// Open implements Source.
func (s *files) Open(ctx context.Context, split Split, from ledger.Source) (Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(split.ID, filePrefix)
	if to, ok := s.moved[split.ID]; ok {
		path = to
	}
	p, err := parsePosition(split.Name, from)
	if err != nil {
		return nil, err
	}
	f, err := openFile(path, split.Name)
	if err != nil {
		return nil, err
	}
	in := &fileInput{f: f, disk: &s.read, total: &s.total}
	if err := in.open(split.Name, p); err != nil {
		f.Close()
		return nil, err
	}
	return newFramer(split.Name, in.remedy(), in, s.o, s.form, p, from.NextRow), nil
}

// Progress implements Source.
func (s *files) Progress() float64 {
	total := s.total.Load()
	if total <= 0 {
		return 0
	}
	return min(1, float64(s.read.Load())/float64(total))
}

// fileInput reads one file, as far as it goes.
type fileInput struct {
	f           *os.File
	compression string
	z           io.ReadCloser // nil until the first read of a compressed file
	size        int64         // on disk when it was opened
	at          int64         // where the next read from disk is
	n           int64         // length of the fingerprint
	hash        string
	identity    string
	disk        *atomic.Int64
	total       *atomic.Int64
}

// open looks at the file: is it the one that p was taken from?
func (in *fileInput) open(name string, p position) error {
	info, err := in.f.Stat()
	if err != nil {
		return fault.New(fault.Halt, "", "read %s: %w", name, err)
	}
	in.size, in.identity = info.Size(), localfs.Identity(in.f)
	if err := checkFingerprint(in.f, name, p); err != nil {
		return err
	}
	in.n, in.hash = p.N, p.Hash
	start := make([]byte, max(magicBytes, min(fingerprintBytes, in.size)))
	got, err := in.f.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fault.New(fault.Halt, "", "read the start of %s: %w", name, err)
	}
	start = start[:got]
	if p.N == 0 { // new, or empty when it was seen
		start = start[:min(int64(got), in.size)]
		in.n, in.hash = int64(len(start)), fingerprint(start)
	}
	in.compression, err = compressionOf(name, start[:min(len(start), magicBytes)])
	if err != nil {
		return fault.New(fault.Halt, remedyOr(err, "rename it, or replace it by a whole copy"), "read %s: %w", name, err)
	}
	if in.compression != plain && p.End && in.size != p.Size {
		return fault.New(fault.Halt, "put the old one back, and what is new in a file of its own",
			"resume %s: it has grown from %d to %d bytes since it was read to its end, which no whole %s file does", name, p.Size, in.size, in.compression)
	}
	return nil
}

// remedy is what to do when the file cannot be read on.
func (in *fileInput) remedy() string {
	if in.compression == plain {
		return ""
	}
	return "replace it by a whole copy of the same " + in.compression + " file; reading goes on after what was read"
}

// Read is the file's own, counted.
func (in *fileInput) Read(p []byte) (int, error) {
	n, err := in.f.Read(p)
	in.at += int64(n)
	in.disk.Add(int64(n))
	if errors.Is(err, io.EOF) && in.at < in.size {
		return n, fmt.Errorf("it was cut from %d to %d bytes while it was read", in.size, in.at)
	}
	return n, err
}

func (in *fileInput) read(ctx context.Context, p []byte, _ bool) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if in.compression == plain {
		return in.Read(p)
	}
	if in.z == nil {
		z, err := decompress(in.compression, in)
		if err != nil {
			return 0, damaged(in.compression, err)
		}
		in.z = z
	}
	n, err := in.z.Read(p)
	return n, damaged(in.compression, err)
}

// damaged names what is wrong with a compressed stream. io.EOF stays itself.
func damaged(compression string, err error) error {
	switch {
	case err == nil || err == io.EOF || compression == plain:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the %s stream is cut short: %w", compression, err)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return err
	}
	return fmt.Errorf("the %s stream is damaged: %w", compression, err)
}

func (in *fileInput) seek(offset int64) (bool, error) {
	if in.compression != plain {
		return false, nil
	}
	if _, err := in.f.Seek(offset, io.SeekStart); err != nil {
		return false, err
	}
	in.total.Add(in.at - offset) // is not read in this run
	in.at = offset
	return true, nil
}

func (in *fileInput) mark(p *position) {
	p.N, p.Hash, p.File = in.n, in.hash, in.identity
	p.Size = max(in.size, in.at)
	if p.End {
		// What is on disk beyond the last read came after the end: with its
		// size unchanged the file will not be looked at again (S6).
		p.Size = in.at
	}
}

// resumed has nothing to add to what open has checked.
func (in *fileInput) resumed(position) error { return nil }

func (in *fileInput) close() error {
	var zerr error
	if in.z != nil {
		zerr = in.z.Close()
	}
	return errors.Join(zerr, in.f.Close())
}
