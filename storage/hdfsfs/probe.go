package hdfsfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/internal/fault"
)

// probeBytes are enough for several packets of a data node.
const probeBytes = 300 << 10

// Probe finds out whether this client can read what it writes. Of the
// protections of a secure cluster's data transfer it writes all, but loses count
// of the bytes it reads with integrity, and with privacy unless the data nodes
// have the AES cipher suite: that must not be noticed when there is something to
// lose. A file is written in dir, or in the next directory above that exists, and
// removed; not where no such protection is in force.
//
// Nor does the client know erasure coding: it would write a striped file as if it
// were one block, and its close would never be answered.
func (f *FS) Probe(dir string) error {
	f.doubted.Store(true) // it is being asked
	dir, striped, err := f.existing(dir)
	if err != nil {
		return f.wrap("probe", dir, "", err)
	}
	if striped {
		return fault.New(fault.Config, "hdfs ec -setPolicy -replicate -path DIR lets it be replicated",
			"table.location hdfs://%s: new files in %s are erasure-coded, which this client can neither write nor read", f.o.Authority, dir)
	}
	if !f.protected() {
		return nil
	}
	name := path.Join(dir, ".hivesink-probe-"+suffix())
	text := bytes.Repeat([]byte("hivesink reads what it writes. \n"), probeBytes/32)
	if err := f.put(name, bytes.NewReader(text), int64(len(text)), f.o.StartTimeout); err != nil {
		var classed *fault.Error
		if errors.As(err, &classed) && classed.Class == fault.Retry {
			return fault.Wrap(fault.Retry, "see whether the data nodes are well, and whether hdfs.data_transfer_protection is what they have",
				fmt.Errorf("table.location hdfs://%s: no data node takes data: %w", f.o.Authority, classed.Err))
		}
		return err
	}
	err = f.readBack(name, text)
	if rerr := f.Remove(name); err == nil {
		err = rerr
	}
	return err
}

// protected: data may be protected on its way, perhaps in a manner that this
// client misreads.
func (f *FS) protected() bool {
	return f.o.Kerberos != nil || f.o.Protection != "" || f.encrypts
}

// doubt asks, once, whether the client can read at all, when an operation has
// failed otherwise than by the network: who only reads a table does not probe
// before, and would wait for a data node that is well. The name is what's second
// word. Where nothing may be written it cannot be found out.
func (f *FS) doubt(what string, err error) error {
	var network net.Error
	if !f.protected() || errors.As(err, &network) || f.doubted.Swap(true) {
		return nil
	}
	_, name, _ := strings.Cut(what, " ")
	if err := f.Probe(path.Dir(path.Clean("/" + name))); fault.ClassOf(err) == fault.Config {
		return err
	}
	return nil
}

// existing is dir, or the next directory above that exists, and whether files
// that are made in it are erasure-coded.
func (f *FS) existing(dir string) (there string, striped bool, err error) {
	for ; ; dir = path.Dir(dir) {
		var isDir bool
		err = f.do("stat "+dir, func(s *session) error {
			info, err := s.client.Stat(dir)
			if err != nil {
				return err
			}
			status, ok := info.Sys().(*hdfs.FileStatus)
			isDir, striped = info.IsDir(), ok && erasureCoded(status)
			return nil
		})
		if err == nil && isDir || dir == "/" || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dir, striped, err
		}
	}
}

// replicationPolicy is the number of the policy that says "no erasure coding
// here", to end what a directory above has.
const replicationPolicy = 63

func erasureCoded(status *hdfs.FileStatus) bool {
	policy := status.GetEcPolicy()
	return policy != nil && policy.GetId() != replicationPolicy
}

// readBack tries a few times: a data node may be gone, which is another matter.
func (f *FS) readBack(name string, text []byte) (err error) {
	for range 3 {
		var s *session
		if s, err = f.acquire(); err != nil {
			return err
		}
		var got []byte
		got, err = s.client.ReadFile(name)
		f.giveBack(s, err != nil)
		if err == nil && bytes.Equal(got, text) {
			return nil
		}
		var network net.Error
		if errors.As(err, &network) {
			continue
		}
		if err == nil {
			err = errors.New("other bytes came back")
		}
	}
	var network net.Error
	if errors.As(err, &network) {
		return f.wrap("probe", name, "", fault.Wrap(fault.Retry, "see whether the data nodes are well", err))
	}
	what := f.o.Protection
	if what == "" || f.encrypts {
		what = "encryption"
	}
	return fault.New(fault.Config, "set dfs.data.transfer.protection to authentication, or to privacy with dfs.encrypt.data.transfer.cipher.suites AES/CTR/NoPadding, on the data nodes, and in hdfs.conf_dir or hdfs.data_transfer_protection",
		"table.location hdfs://%s: this client cannot read what it writes with the data nodes' protection %q: %w", f.o.Authority, what, fmt.Errorf("probe %s: %w", name, err))
}
