// Package memfs is storage.FS in memory, made to show what a power cut or a
// kill leaves behind. It is for tests and simulations: deterministic (its clock
// ticks once per change), safe for concurrent use, and cheap to copy, since
// bytes are shared between a file system and its images.
//
// # What is durable
//
//	M1  Posix: bytes are durable after File.Sync, and only then; Close does
//	    nothing for them.
//	M2  Posix: an entry (made, renamed, removed) is durable after SyncDir of its
//	    directory; a rename across directories after SyncDir of both. Syncing a
//	    file does not sync its entry, and syncing a directory not its own.
//	M3  HDFS: entries are durable at once, bytes at Sync or Close.
//	M4  A rename is one step: an image has the old name or the new one, never
//	    both, and never none if the source was durable and the target's
//	    directory is there. A replaced file goes exactly when its successor comes.
//	M5  A file has one name at a time (the interface knows no links), so an image
//	    chooses for each file one of the places where it was since its last
//	    durable one. A place that is taken in the image is not taken over unless
//	    the step itself replaced what was there.
//	M6  What was made durable is in every image, with its bytes unchanged.
//	M7  An image is durable as a whole, holds no lock, and shares no fate with
//	    the file system it was taken from: old handles write to the old one.
//	M8  An exchange is one step as well: an image has both directories where they
//	    were or both where the other was. It is durable after SyncDir of both
//	    parents, and before any later step of either.
//
// A file whose directory's own entry is lost is gone with it: so much for not
// syncing the parent of a new directory.
//
// Real journaling file systems lose less: they keep the order of entries, which
// the mode Ordered models. A protocol that survives Random survives them.
package memfs
