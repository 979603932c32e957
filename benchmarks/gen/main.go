// Command gen writes the benchmark's records: deterministic NDJSON or CSV,
// 7 columns, about 150 bytes a row.
//
//	go run ./benchmarks/gen DIR ROWS FILES DAYS [ndjson|csv]
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("usage: gen DIR ROWS FILES DAYS [ndjson|csv]")
	}
	n := make([]int, 3)
	for i := range n {
		v, err := strconv.Atoi(args[i+1])
		if err != nil || v <= 0 {
			return fmt.Errorf("%q is not a positive number", args[i+1])
		}
		n[i] = v
	}
	format := "ndjson"
	if len(args) > 4 {
		format = args[4]
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	per := n[0] / n[1]
	for f := range n[1] {
		if err := write(args[0], format, f, per, n[2]); err != nil {
			return err
		}
	}
	return nil
}

// write writes one file; its rows depend on nothing but its number.
func write(dir, format string, file, rows, days int) error {
	fh, err := os.Create(filepath.Join(dir, fmt.Sprintf("part-%04d.%s", file, format)))
	if err != nil {
		return err
	}
	defer fh.Close()
	w := bufio.NewWriterSize(fh, 1<<20)
	line := `{"id":%d,"ts":"%s","user_name":"user-%06d","country":"C%03d","amount":%.2f,"url":"/shop/category-%02d/item-%05d","ok":%t}` + "\n"
	if format == "csv" {
		line = "%d,%s,user-%06d,C%03d,%.2f,/shop/category-%02d/item-%05d,%t\n"
		fmt.Fprintln(w, "id,ts,user_name,country,amount,url,ok")
	}
	r := rand.New(rand.NewSource(int64(file) + 42))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	span := int64(days) * 86400000
	for i := range rows {
		ts := time.UnixMilli(start + r.Int63n(span)).UTC().Format("2006-01-02T15:04:05.000Z")
		user, country := r.Intn(100000), r.Intn(200)
		fmt.Fprintf(w, line, file*rows+i, ts, user, country, r.Float64()*1000, r.Intn(40), r.Intn(60000), r.Intn(10) != 0)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return fh.Close()
}
