package textval

import (
	"hash/maphash"
	"unicode"
	"unicode/utf8"

	"github.com/hivesink/hivesink/hivetype"
)

// Ranks of a name: a key that is spelled as the column is wins over one that
// differs in case, wherever in the object they are.
const (
	rankNone uint8 = iota
	rankFolded
	rankExact
)

// names finds the fields of a struct by key. Spellings seen before are found
// without folding, and the one that followed the last time without hashing.
type names struct {
	fields map[string]int32 // by folded name
	exact  []string
	spell  []spelling // [0] stands for the start of an object
	table  []int32    // hash table of indices into spell, 0 is free
	folded []byte
}

// spelling is a key as written, without escapes.
type spelling struct {
	key   string
	next  int32 // the spelling after it the last time
	field int32 // below zero: none
	rank  uint8
}

var seed = maphash.MakeSeed()

func newNames(fields []hivetype.Field) *names {
	n := &names{fields: make(map[string]int32, len(fields)), spell: make([]spelling, 1)}
	for i, f := range fields {
		n.exact = append(n.exact, f.Name)
		n.fields[string(fold(nil, []byte(f.Name)))] = int32(i)
	}
	size := 64
	for size < 8*len(fields) {
		size *= 2
	}
	n.table = make([]int32, size)
	return n
}

// fold appends a key in lower case, by the rule that makes the table's names
// lower case (hivetype H1): a column declared as ÄNDERUNG is änderung, and the
// key ÄNDERUNG means it.
func fold(dst, key []byte) []byte {
	for len(key) > 0 {
		c, n := utf8.DecodeRune(key)
		dst = utf8.AppendRune(dst, unicode.ToLower(c))
		key = key[n:]
	}
	return dst
}

// resolve matches a key with the fields.
func (n *names) resolve(key []byte) (field int32, rank uint8) {
	n.folded = fold(n.folded[:0], key)
	i, ok := n.fields[string(n.folded)]
	if !ok {
		return -1, rankNone
	}
	if n.exact[i] == string(key) {
		return i, rankExact
	}
	return i, rankFolded
}

// find looks for a key. at is its spelling, 0 when it is not kept: keys that
// go on being new must not fill the memory.
func (n *names) find(key []byte, plain bool) (at, field int32, rank uint8) {
	if !plain {
		field, rank = n.resolve(key)
		return 0, field, rank
	}
	mask := uint64(len(n.table) - 1)
	h := maphash.Bytes(seed, key) & mask
	for ; n.table[h] != 0; h = (h + 1) & mask {
		at = n.table[h]
		if s := &n.spell[at]; s.key == string(key) {
			return at, s.field, s.rank
		}
	}
	field, rank = n.resolve(key)
	if len(n.spell) > len(n.table)/2 {
		return 0, field, rank
	}
	at = int32(len(n.spell))
	n.spell = append(n.spell, spelling{key: string(key), field: field, rank: rank})
	n.table[h] = at
	return at, field, rank
}
