package parquetfile

import (
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/lz4"
	"github.com/parquet-go/parquet-go/compress/snappy"
)

var zstdFastest zstdFast

// lz4Fastest: the library's default looks for matches without end: 0.1 M rows a
// second.
var lz4Fastest = lz4.Codec{Level: lz4.Fastest}

// snappyFast: the library's default looks for better matches, at twice the
// cost. What is to be small is compressed with zstd.
type snappyFast struct{ snappy.Codec }

func (snappyFast) Encode(dst, src []byte) ([]byte, error) { return s2.EncodeSnappy(dst, src), nil }

func codecOf(name string) (compress.Codec, error) {
	switch name {
	case "zstd":
		return &zstdFastest, nil
	case "snappy":
		return &snappyFast{}, nil
	case "gzip":
		return &parquet.Gzip, nil
	case "lz4":
		return &lz4Fastest, nil
	case "none":
		return &parquet.Uncompressed, nil
	}
	return nil, fmt.Errorf("no codec %q; there are zstd, snappy, gzip, lz4 and none", name)
}
