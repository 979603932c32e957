package memfs

// change is one step of the namespace. Each makes one inode appear, move or
// vanish, and may make a second one vanish with it (the victim of Replace) or
// go the other way (the partner of Exchange).
type change struct {
	seq      int64
	node     *inode
	from, to place // no from: made; no to: removed
	victim   *inode
	partner  *inode

	fromSynced, toSynced bool
	done                 bool // durable, or overtaken by a later durable one
}

// apply makes a change visible. In the HDFS model it is durable with that (M3).
func (m *FS) apply(c *change) {
	m.seq++
	c.seq = m.seq
	if c.from.dir != nil {
		delete(c.from.dir.entries, c.from.name)
		c.from.dir.modTime = m.now()
	}
	if c.victim != nil {
		c.victim.at = place{}
		m.reclaim(c.victim)
	}
	if c.to.dir != nil {
		c.to.dir.entries[c.to.name] = c.node
		c.to.dir.modTime = m.now()
	}
	c.node.at = c.to
	if c.partner != nil {
		c.from.dir.entries[c.from.name] = c.partner
		c.partner.at = c.from
	}
	if c.to.dir == nil {
		m.reclaim(c.node)
	}
	if m.opts.Model == HDFS {
		m.commit(c)
		return
	}
	m.log = append(m.log, c)
}

// syncDir makes every change durable that was waiting for this directory only
// (M2).
func (m *FS) syncDir(dir *inode) {
	for _, c := range m.log {
		c.fromSynced = c.fromSynced || c.from.dir == dir
		c.toSynced = c.toSynced || c.to.dir == dir
		if (c.from.dir == nil || c.fromSynced) && (c.to.dir == nil || c.toSynced) {
			m.commit(c)
		}
	}
	pending := m.log[:0]
	for _, c := range m.log {
		if !c.done {
			pending = append(pending, c)
		}
	}
	clear(m.log[len(pending):])
	m.log = pending
}

// commit makes a change durable, and with it what it cannot do without: an
// entry holds one inode, so what came and went under this name before becomes
// durable first, and so does what left a directory that is now removed. Each
// such change has a lower number; that ends the recursion.
func (m *FS) commit(c *change) {
	if c.done {
		return
	}
	c.done = true
	flushes := m.flushes
	m.commitBefore(c.seq, func(e *change) bool {
		if e.partner != nil && (c.moves(e.node) || c.moves(e.partner)) {
			return true // half of an exchange must not be overtaken (M8)
		}
		if c.partner != nil && (e.moves(c.node) || e.moves(c.partner) || e.from == c.from || e.to == c.from) {
			return true
		}
		if c.to.dir == nil {
			return e.node != c.node && (e.from.dir == c.node || e.to.dir == c.node)
		}
		return e.from == c.to || e.to == c.to
	})
	if c.makesRing() {
		m.flush()
	}
	if m.flushes != flushes {
		return // all is durable, c and what came after it
	}
	c.settle()
	m.overtake(c.node, c.seq)
	if c.victim != nil {
		m.overtake(c.victim, c.seq)
	}
	if c.partner != nil {
		m.overtake(c.partner, c.seq)
	}
}

// moves says whether a change is one of inode n.
func (c *change) moves(n *inode) bool { return c.node == n || c.victim == n || c.partner == n }

// settle writes a change into the durable world, overriding what is known there
// of its inodes.
func (c *change) settle() {
	c.node.settleAt(c.to)
	if c.victim != nil {
		c.victim.settleAt(place{})
	}
	if c.partner != nil {
		c.partner.settleAt(c.from)
	}
}

func (n *inode) settleAt(p place) {
	if old := n.durableAt; old.dir != nil && old.dir.durable[old.name] == n {
		delete(old.dir.durable, old.name)
	}
	n.durableAt = p
	if p.dir != nil {
		p.dir.durable[p.name] = n
	}
}

// occupant is the inode that the durable world has at the change's target and
// that the change does not itself replace.
func (c *change) occupant() *inode {
	if c.to.dir == nil {
		return nil
	}
	o := c.to.dir.durable[c.to.name]
	if o == c.node || o == c.victim || o == c.partner {
		return nil
	}
	return o
}

// makesRing: a directory would come to lie within itself, because a change that
// took one of its new parents out of it is not durable.
func (c *change) makesRing() bool {
	return c.node.holds(c.to.dir) || c.partner != nil && c.partner.holds(c.from.dir)
}

// holds: in the durable world d lies in n, or is n.
func (n *inode) holds(d *inode) bool {
	for ; d != nil; d = d.durableAt.dir {
		if d == n {
			return true
		}
	}
	return false
}

func (m *FS) commitBefore(seq int64, which func(*change) bool) {
	for _, c := range m.log {
		if c.seq < seq && !c.done && which(c) {
			m.commit(c)
		}
	}
}

// flush makes everything durable. It is what is left when directories that
// took turns in lying within each other were synced in an order that no partial
// result satisfies.
func (m *FS) flush() {
	m.flushes++
	for _, c := range m.log {
		c.done = true
		c.node.settleAt(place{})
		if c.victim != nil {
			c.victim.settleAt(place{})
		}
		if c.partner != nil {
			c.partner.settleAt(place{})
		}
	}
	m.root.flush()
}

func (n *inode) flush() {
	n.durableAt = n.at
	if !n.isDir {
		return
	}
	n.durable = make(map[string]*inode, len(n.entries))
	for name, e := range n.entries {
		n.durable[name] = e
		e.flush()
	}
}

// overtake drops the earlier changes of an inode whose later place is durable;
// what they replaced is gone all the same.
func (m *FS) overtake(n *inode, seq int64) {
	for _, c := range m.log {
		if c.seq >= seq || c.done || c.node != n {
			continue
		}
		c.done = true
		if c.victim != nil {
			c.victim.settleAt(place{})
			m.overtake(c.victim, c.seq)
		}
	}
}
