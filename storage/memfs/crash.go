package memfs

import (
	"fmt"
	"math/rand/v2"
)

// Mode says what a power cut leaves of that which was not synced.
type Mode int

// The modes. In the HDFS model all entries are durable, so that only the bytes
// of files neither synced nor closed differ.
const (
	// SyncedOnly: nothing of it.
	SyncedOnly Mode = iota
	// Everything: all of it.
	Everything
	// EntriesOnly: the entries, without the bytes (files cut short or empty).
	EntriesOnly
	// DataOnly: the bytes, without the entries.
	DataOnly
	// Ordered: the entries up to some change and none after it, as journals do;
	// of the bytes of each file the first ones.
	Ordered
	// Random: each change of an entry and each block of bytes by itself, with a
	// chance of 10, 50 or 90 %. A lost block is cut off, zeros or garbage; the
	// last one may end at any multiple of 512 bytes.
	Random
)

// Modes are all of them.
var Modes = []Mode{SyncedOnly, Everything, EntriesOnly, DataOnly, Ordered, Random}

func (mode Mode) String() string {
	names := [...]string{"synced-only", "everything", "entries-only", "data-only", "ordered", "random"}
	if mode < 0 || int(mode) >= len(names) {
		return fmt.Sprintf("mode %d", int(mode))
	}
	return names[mode]
}

// Sizes of what is lost by itself: blocks of a file, and sectors of a block.
const (
	blockBytes  = 4096
	sectorBytes = 512
)

// Crash returns a new file system as it would be found after a power cut at
// this moment. Equal seeds give equal images; only Ordered and Random look at
// the seed. The file system itself is not changed (M7).
func (m *FS) Crash(mode Mode, seed uint64) *FS {
	image := m.clone()
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	chance := [...]float64{0.1, 0.5, 0.9}[rng.IntN(3)]
	switch mode {
	case Everything, EntriesOnly:
		image.flush()
	case Ordered:
		prefix := rng.IntN(len(image.log) + 1)
		image.keep(func(i int) bool { return i < prefix })
	case Random:
		image.keep(func(int) bool { return rng.Float64() < chance })
	}
	image.restart(func(n *inode) []byte {
		switch mode {
		case Everything, DataOnly:
			return n.data
		case Ordered:
			return n.data[:n.synced+rng.IntN(len(n.data)-n.synced+1)]
		case Random:
			return tear(n.data, n.synced, chance, rng)
		}
		return n.data[:n.synced]
	})
	return image
}

// Kill returns a new file system as the next process finds it when this one is
// killed now: all there, no locks and no handles. What was not synced stays not
// synced, so that a later Crash of it may still lose it.
func (m *FS) Kill() *FS { return m.clone() }

// keep makes the chosen pending changes durable, as far as the image can hold
// them.
func (m *FS) keep(chosen func(i int) bool) {
	for i, c := range m.log {
		if chosen(i) && m.tenable(c) {
			c.settle()
		}
	}
}

// tenable: the image can hold this change (M4, M5).
func (m *FS) tenable(c *change) bool {
	if c.to.dir == nil {
		// What the image still has in a removed directory may have been renamed
		// out of it, and must not be lost with it.
		return len(c.node.durable) == 0
	}
	if c.partner != nil && (c.node.durableAt != c.from || c.partner.durableAt != c.to) {
		return false // an exchange has both in place, or is none (M8)
	}
	return c.occupant() == nil && !c.makesRing() && m.reachable(c.to.dir)
}

func (m *FS) reachable(n *inode) bool {
	for n != m.root && n != nil {
		n = n.durableAt.dir
	}
	return n != nil
}

// restart makes the durable world the only one, with the bytes that survive.
func (m *FS) restart(bytes func(*inode) []byte) {
	m.log, m.used = nil, 0
	m.root.restart(m, bytes)
}

func (n *inode) restart(m *FS, bytes func(*inode) []byte) {
	n.at = n.durableAt
	if !n.isDir {
		d := bytes(n)
		n.data = d[:len(d):len(d)]
		n.synced = len(d)
		m.used += int64(len(d))
		return
	}
	n.entries = make(map[string]*inode, len(n.durable))
	for _, name := range sortedNames(n.durable) { // sorted: bytes may draw lots
		e := n.durable[name]
		n.entries[name] = e
		e.restart(m, bytes)
	}
}

// tear returns what is left of bytes of which the first synced ones are safe
// (M6).
func tear(data []byte, synced int, chance float64, rng *rand.Rand) []byte {
	if synced == len(data) || rng.Float64() < chance/2 {
		return data
	}
	size := len(data)
	switch rng.IntN(3) {
	case 0: // lost whole
		return data[:synced]
	case 1: // the size was written short
		sectors := (size - synced) / sectorBytes
		size = max(synced, (synced+rng.IntN(sectors+1)*sectorBytes)/sectorBytes*sectorBytes)
	}
	torn := append(make([]byte, 0, size), data[:size]...)
	for at := synced; at < size; {
		end := min(size, (at/blockBytes+1)*blockBytes)
		if rng.Float64() >= chance {
			spoil(torn[at:end], rng)
		}
		at = end
	}
	return torn
}

// spoil overwrites a lost block: mostly with zeros, else with what the disk
// happened to hold; at times only from some sector on.
func spoil(block []byte, rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		block = block[rng.IntN(len(block)/sectorBytes+1)*sectorBytes:]
	}
	if rng.IntN(4) != 0 {
		clear(block)
		return
	}
	for i := range block {
		block[i] = byte(rng.Uint32())
	}
}

// clone copies both worlds and the changes between them; the bytes are shared.
func (m *FS) clone() *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &FS{opts: m.opts, seq: m.seq}
	copies := map[*inode]*inode{}
	c.root = copyInode(m.root, copies)
	for _, ch := range m.log {
		if ch.done {
			continue
		}
		d := *ch
		d.node, d.victim, d.partner = copyInode(ch.node, copies), copyInode(ch.victim, copies), copyInode(ch.partner, copies)
		d.from.dir, d.to.dir = copyInode(ch.from.dir, copies), copyInode(ch.to.dir, copies)
		c.log = append(c.log, &d)
	}
	for _, n := range copies {
		if n.at.dir != nil {
			c.used += int64(len(n.data))
		}
	}
	return c
}

func copyInode(n *inode, copies map[*inode]*inode) *inode {
	if n == nil {
		return nil
	}
	if c, ok := copies[n]; ok {
		return c
	}
	c := &inode{isDir: n.isDir, modTime: n.modTime, synced: n.synced}
	copies[n] = c
	// The capacity is cut, so that whoever appends first takes the bytes along.
	c.data = n.data[:len(n.data):len(n.data)]
	c.at = place{copyInode(n.at.dir, copies), n.at.name}
	c.durableAt = place{copyInode(n.durableAt.dir, copies), n.durableAt.name}
	if n.isDir {
		c.entries = copyEntries(n.entries, copies)
		c.durable = copyEntries(n.durable, copies)
	}
	return c
}

func copyEntries(entries map[string]*inode, copies map[*inode]*inode) map[string]*inode {
	c := make(map[string]*inode, len(entries))
	for name, n := range entries {
		c[name] = copyInode(n, copies)
	}
	return c
}
