// Package place finds the storage of a table by the scheme of its location: the
// one place that knows which backends there are.
package place

import (
	"context"
	"path"
	"path/filepath"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/storage/localfs"
	"github.com/hivesink/hivesink/storage/spool"
)

// Place is where a table lies.
type Place struct {
	FS storage.FS
	// Root is the table's root directory: absolute, cleaned, with slashes.
	Root string
	// Lock: the storage's lock decides who owns the table, beside the epochs.
	Lock bool

	close func() error
}

// Notify is told when the storage waits for its servers, and when it goes on
// (err nil).
type Notify func(what string, err error)

// Open connects to the storage of a table. It touches nothing.
func Open(ctx context.Context, cfg *config.Config, notify Notify) (*Place, error) {
	l := cfg.Table.Location
	switch {
	case l.IsLocal():
		return local(cfg)
	case l.Scheme == "hdfs":
		return onHDFS(ctx, cfg, notify)
	case l.Scheme == "s3":
		return onS3(ctx, cfg, notify)
	}
	return nil, fault.New(fault.Config, "use file://, hdfs:// or s3://", "table.location: %s:// is not known", l.Scheme)
}

// prober is a storage that has to be tried before something depends on it.
type prober interface{ Probe(dir string) error }

// Probe finds out, before the table is owned, whether the storage does what will
// be asked of it.
func (p *Place) Probe() error {
	if s, ok := p.FS.(prober); ok {
		return s.Probe(p.Root)
	}
	return nil
}

// Close gives connections up.
func (p *Place) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

// Root is the root directory of a table on its storage.
func Root(cfg *config.Config) string {
	l := cfg.Table.Location
	if !l.IsLocal() {
		return path.Clean("/" + l.Path)
	}
	abs, err := filepath.Abs(l.Path)
	if err != nil { // the working directory is gone
		abs = filepath.Clean(l.Path)
	}
	return filepath.ToSlash(abs)
}

func local(cfg *config.Config) (*Place, error) {
	p := &Place{FS: localfs.New(), Root: Root(cfg), Lock: true}
	if kind, network := localfs.NetworkMount(p.Root); network {
		return nil, fault.New(fault.Config, "use a local disk; hdfs and s3 have rules of their own",
			"table.location: %s is on a network mount (%s), where a lock does not decide who owns the table", p.Root, kind)
	}
	return p, nil
}

func onHDFS(ctx context.Context, cfg *config.Config, notify Notify) (*Place, error) {
	h := &cfg.HDFS
	o := hdfsfs.Options{
		Authority: cfg.Table.Location.Host, NameNodes: h.NameNodes, User: h.User, ConfDir: h.ConfDir,
		Replication: h.Replication, BlockSize: int64(h.BlockSize), ConnectTimeout: time.Duration(h.ConnectTimeout),
		CallTimeout: time.Duration(h.CallTimeout), StartTimeout: time.Duration(h.StartTimeout), Patience: time.Duration(h.RetryFor),
		Protection: h.DataTransferProtection, Notify: notify,
	}
	if k := h.Kerberos; k != nil {
		o.Kerberos = &hdfsfs.Kerberos{Principal: k.Principal, Keytab: k.Keytab, TicketCache: k.TicketCache, Krb5Conf: k.Krb5Conf, Service: k.Service}
	}
	fs, err := hdfsfs.New(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Place{FS: fs, Root: Root(cfg), close: fs.Close}, nil
}

// spoolShare is the part of limits.memory that spools may take; what is more
// waits in state_dir.
const spoolShare = 16

// Staged is the storage for files that are written piece by piece: on a remote
// storage they wait in a spool until they are whole. eased is told when fewer
// bytes wait there than before.
func Staged(fs storage.FS, cfg *config.Config, eased func()) (storage.FS, error) {
	p, remote := fs.(storage.Putter)
	if !remote {
		return fs, nil
	}
	return spool.New(p, spool.Options{Dir: filepath.Join(cfg.StateDir, "spool"), Memory: int64(cfg.Limits.Memory) / spoolShare, Eased: eased})
}
