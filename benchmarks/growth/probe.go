package main

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// counter is a file system that counts what is asked of it.
type counter struct {
	storage.FS
	mu sync.Mutex
	n  ops
}

// ops are numbers of operations.
type ops struct {
	All           int `json:"all"`
	DataListings  int `json:"data_listings"` // of the table's root and partition directories
	LogListings   int `json:"log_listings"`  // of .hivesink and below
	EntriesListed int `json:"entries_listed"`
	FilesRead     int `json:"files_read"`
	BytesRead     int `json:"bytes_read"`
	Synced        int `json:"synced"`
}

func (o ops) minus(p ops) ops {
	return ops{o.All - p.All, o.DataListings - p.DataListings, o.LogListings - p.LogListings, o.EntriesListed - p.EntriesListed,
		o.FilesRead - p.FilesRead, o.BytesRead - p.BytesRead, o.Synced - p.Synced}
}

func (c *counter) count(change func(*ops)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n.All++
	if change != nil {
		change(&c.n)
	}
}

func (c *counter) seen() ops {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counter) List(dir string) ([]storage.Info, error) {
	infos, err := c.FS.List(dir)
	c.count(func(n *ops) {
		n.EntriesListed += len(infos)
		if strings.Contains(dir, "/"+layout.MetaDir) {
			n.LogListings++
		} else {
			n.DataListings++
		}
	})
	return infos, err
}

func (c *counter) ReadFile(name string) ([]byte, error) {
	data, err := c.FS.ReadFile(name)
	c.count(func(n *ops) {
		if err == nil {
			n.FilesRead++
			n.BytesRead += len(data)
		}
	})
	return data, err
}

func (c *counter) Create(name string) (storage.File, error) { c.count(nil); return c.FS.Create(name) }

func (c *counter) Open(name string) (storage.Reader, error) { c.count(nil); return c.FS.Open(name) }

func (c *counter) Rename(from, to string) error { c.count(nil); return c.FS.Rename(from, to) }

func (c *counter) Replace(from, to string) error { c.count(nil); return c.FS.Replace(from, to) }

func (c *counter) Remove(name string) error { c.count(nil); return c.FS.Remove(name) }

func (c *counter) Mkdir(name string) error { c.count(nil); return c.FS.Mkdir(name) }

func (c *counter) Stat(name string) (storage.Info, error) { c.count(nil); return c.FS.Stat(name) }

func (c *counter) SyncDir(dir string) error {
	c.count(func(n *ops) { n.Synced++ })
	return c.FS.SyncDir(dir)
}

// keys is an index that counts the keys read and written.
type keys struct {
	kv.Store
	read, written atomic.Int64
}

func (k *keys) View(fn func(kv.Reader) error) error {
	return k.Store.View(func(r kv.Reader) error { return fn(keyReader{r, k}) })
}

func (k *keys) Update(fn func(kv.Writer) error) error {
	return k.Store.Update(func(w kv.Writer) error { return fn(keyWriter{w, k}) })
}

type keyReader struct {
	kv.Reader
	k *keys
}

func (r keyReader) Get(key string) ([]byte, error) {
	r.k.read.Add(1)
	return r.Reader.Get(key)
}

func (r keyReader) Scan(prefix string, fn func(string, []byte) error) error {
	return r.Reader.Scan(prefix, func(key string, value []byte) error {
		r.k.read.Add(1)
		return fn(key, value)
	})
}

type keyWriter struct {
	kv.Writer
	k *keys
}

func (w keyWriter) Set(key string, value []byte) error {
	w.k.written.Add(1)
	return w.Writer.Set(key, value)
}

func (w keyWriter) Delete(key string) error {
	w.k.written.Add(1)
	return w.Writer.Delete(key)
}
