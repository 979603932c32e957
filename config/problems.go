package config

import (
	"errors"
	"sort"
	"strconv"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
)

// Problem is one thing that is wrong with a config.
type Problem struct {
	File    string `json:"file,omitempty"` // file, or the --set flag; "" for a filled struct
	Line    int    `json:"line,omitempty"` // from 1; 0 when there is none
	Col     int    `json:"col,omitempty"`  // from 1; 0 when there is none
	Path    string `json:"path,omitempty"` // path of the option: compaction.file_size, table.columns[2]
	Message string `json:"message"`        // what is wrong
	Hint    string `json:"hint,omitempty"` // what to do about it; may be empty

	flag int // ordinal of the --set flag, from 1; 0 in a file
}

// String prints file:line:col: path: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			b.WriteString(":" + strconv.Itoa(p.Line))
			if p.Col > 0 {
				b.WriteString(":" + strconv.Itoa(p.Col))
			}
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is everything that is wrong with a config, sorted by line; what
// --set flags brought comes last, in the order of the flags. Its class is
// fault.Config.
type Problems struct {
	List []Problem
}

// Error prints one problem a line.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, one := range p.List {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives Problems its class.
func (p *Problems) Unwrap() error { return errConfig }

var errConfig = fault.Wrap(fault.Config, "", errors.New("bad config"))

// err is p sorted, or nil when nothing is wrong.
func (p *Problems) err() error {
	if len(p.List) == 0 {
		return nil
	}
	sort.SliceStable(p.List, func(i, j int) bool {
		a, b := p.List[i], p.List[j]
		if a.flag != b.flag {
			return a.flag < b.flag
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	return p
}

// place is where an option was given.
type place struct {
	file      string
	line, col int
	flag      int
}

func (at place) problem(path, message, hint string) Problem {
	return Problem{File: at.file, Line: at.line, Col: at.col, flag: at.flag, Path: path, Message: message, Hint: hint}
}

// nearest finds the known name that name was most likely meant to be; "" when
// none is near.
func nearest(name string, known []string) string {
	best, bestAt := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(fold(name), fold(k)); d < bestAt {
			best, bestAt = k, d
		}
	}
	return best
}

// fold makes names alike that differ by case and hyphens only.
func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// distance counts the single-byte insertions, deletions, replacements and
// swaps of neighbours that turn a into b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
