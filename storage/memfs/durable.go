package memfs

// change is one step of the namespace. Each makes one inode appear, move or
// vanish, and may make a second one (the victim of Replace) vanish with it.
type change struct {
	seq      int64
	node     *inode
	from, to place // no from: made; no to: removed
	victim   *inode

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
// entry holds one inode and a tree has no rings, so whoever is in the way must
// have moved on by an earlier change, which becomes durable first. Each such
// change has a lower number; that ends the recursion.
func (m *FS) commit(c *change) {
	if c.done {
		return
	}
	c.done = true
	if occupant := c.occupant(); occupant != nil {
		m.commitLast(occupant, c.seq)
	}
	if c.makesRing() {
		m.commitBefore(c.seq, func(*change) bool { return true })
	}
	if c.node.isDir && c.to.dir == nil {
		m.emptied(c.node, c.seq)
	}
	c.settle()
	m.overtake(c.node, c.seq)
	if c.victim != nil {
		m.overtake(c.victim, c.seq)
	}
}

// settle writes a change into the durable world, overriding what is known there
// of its inodes.
func (c *change) settle() {
	c.node.settleAt(c.to)
	if c.victim != nil {
		c.victim.settleAt(place{})
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
	if o == c.node || o == c.victim {
		return nil
	}
	return o
}

// makesRing: a directory would come to lie within itself, because the change
// that took its new parent out of it is not durable.
func (c *change) makesRing() bool {
	for d := c.to.dir; d != nil; d = d.durableAt.dir {
		if d == c.node {
			return true
		}
	}
	return false
}

// commitLast makes the last change of n before seq durable.
func (m *FS) commitLast(n *inode, seq int64) {
	for i := len(m.log) - 1; i >= 0; i-- {
		if c := m.log[i]; c.seq < seq && !c.done && (c.node == n || c.victim == n) {
			m.commit(c)
			return
		}
	}
}

func (m *FS) commitBefore(seq int64, which func(*change) bool) {
	for _, c := range m.log {
		if c.seq < seq && !c.done && which(c) {
			m.commit(c)
		}
	}
}

// emptied: a directory can only be removed when nothing is in it, so what left
// it has left it durably, and what came and went in it does not matter.
func (m *FS) emptied(dir *inode, seq int64) {
	m.commitBefore(seq, func(c *change) bool {
		return c.node != dir && (c.from.dir == dir || c.to.dir == dir)
	})
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
