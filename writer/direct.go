package writer

import (
	"context"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// Direct is how a part that will be published as it is, and by nobody else, gets
// to an object store: its bytes go once, to an upload to the part's final name,
// which is drawn and noted before. The upload is hidden; publishing is to
// complete it.
type Direct struct {
	Objects storage.Objects
	// Room is where a part waits until it is whole.
	Room func() storage.Scratch
	// Location is the root directory of a table.
	Location func(table string) string
	// Note makes it known that uploads to these names are about to begin.
	Note func(names []string) error
}

// Path is the full path of a part's final name.
func (d *Direct) Path(table, partition, name string) string {
	return path.Join(d.Location(table), partition, name)
}

// nameFinal draws the final names of the buckets that have rows and no name
// yet, and notes them all at once.
func (o *Options) nameFinal(list []*bucket) error {
	if o.Direct == nil {
		return nil
	}
	var names []string
	for _, b := range list {
		if b.rows == 0 || b.final != "" {
			continue
		}
		b.final = layout.PartFile(o.Epoch, o.Random())
		names = append(names, o.Direct.Path(b.table, b.path(), b.final))
	}
	if len(names) == 0 {
		return nil
	}
	return o.Direct.Note(names)
}

// upload sends a part that is whole to the upload to its final name.
func (p *openPart) upload(d *Direct, name string) (id string, err error) {
	defer p.room.Close()
	if err := p.buf.Flush(); err != nil {
		return "", err
	}
	if id, err = d.Objects.Upload(context.Background(), name, p.room, p.room.Size()); err != nil {
		return "", fmt.Errorf("send it: %w", err)
	}
	return id, nil
}
