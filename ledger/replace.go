package ledger

// replacing takes the plan to replace published files of a partition. The
// partition must be at rest: nothing planned that would become visible in it.
func (a *application) replacing() error {
	for i := range a.r.Replacing {
		r := a.r.Replacing[i]
		if err := a.checkReplacing(&r); err != nil {
			return err
		}
		put(a.s.Replacements, &a.touched.Replacements, r.ID, &r)
	}
	return nil
}

func (a *application) checkReplacing(r *Replacement) error {
	p := a.s.Partitions[PartitionKey(r.Table, r.Partition)]
	switch {
	case r.ID == "" || len(r.Removed) == 0 || len(r.Added) == 0:
		return a.refuse("a replacement in partition %q without id, old files or new files", r.Partition)
	case a.s.Replacements[r.ID] != nil:
		return a.refuse("replacement %s is there already", r.ID)
	case r.Done:
		return a.refuse("replacement %s is planned as done", r.ID)
	case r.Epoch != a.r.Epoch:
		return a.refuse("replacement %s lies in the staging of epoch %d", r.ID, r.Epoch)
	case p == nil:
		return a.refuse("replacement %s is of partition %q, which was never written", r.ID, r.Partition)
	case int64(len(r.Removed)) > p.Files || r.RemovedBytes > p.Bytes || r.Rows() > p.Rows:
		return a.refuse("replacement %s takes %d files, %d rows and %d bytes of partition %q, which has %d, %d and %d",
			r.ID, len(r.Removed), r.Rows(), r.RemovedBytes, r.Partition, p.Files, p.Rows, p.Bytes)
	}
	for id, other := range a.s.Replacements {
		if other.Table == r.Table && other.Partition == r.Partition {
			return a.refuse("replacements %s and %s are both of partition %q", id, r.ID, r.Partition)
		}
	}
	for id, u := range a.s.Units {
		if u.Table == r.Table && u.Partition == r.Partition && !u.Published {
			return a.refuse("replacement %s is of partition %q, in which unit %s is not published yet", r.ID, r.Partition, id)
		}
	}
	return nil
}

// replaced: the new files are visible and the old ones are not. The rows stay;
// an announcement that covered all files covers the new ones, and one that did
// not still leaves some to announce.
func (a *application) replaced() error {
	for _, id := range a.r.Replaced {
		r := a.s.Replacements[id]
		if r == nil || r.Done {
			return a.refuse("replacement %s is done, and was not planned or is done already", id)
		}
		p := *a.s.Partitions[PartitionKey(r.Table, r.Partition)]
		waiting := p.Unannounced()
		p.Files += int64(len(r.Added) - len(r.Removed))
		for i := range r.Added {
			p.Bytes += r.Added[i].Bytes
		}
		p.Bytes -= r.RemovedBytes
		if waiting {
			p.AnnouncedFiles = min(p.AnnouncedFiles, p.Files-1)
		} else {
			p.AnnouncedFiles, p.AnnouncedBytes = p.Files, p.Bytes
		}
		a.putPartition(p)
		done := *r
		done.Done = true
		put(a.s.Replacements, &a.touched.Replacements, id, &done)
	}
	return nil
}

// replacementsEnded forgets those that are done and cleaned up, or given up
// before anything of them was visible.
func (a *application) replacementsEnded() error {
	for _, id := range a.r.ReplacementsEnded {
		if a.s.Replacements[id] == nil {
			return a.refuse("replacement %s has ended, and is not there", id)
		}
		put(a.s.Replacements, &a.touched.Replacements, id, nil)
	}
	return nil
}
