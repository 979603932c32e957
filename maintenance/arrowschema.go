package maintenance

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/hivesink/hivesink/format/parquet"
)

// arrowSchemaKey has the types that Parquet has not, such as durations and time
// zones; without it a duration is read as a number. Writers put the metadata of
// their table into it, which data frames fill with what is true of one file
// only, as how many rows it has.
const arrowSchemaKey = "ARROW:schema"

// keepArrow puts back the Arrow schema of files whose fields are the same there
// and its metadata are not: with those on which all agree.
func keepArrow(files []*parquetfile.File, meta map[string]string) {
	if _, agreed := meta[arrowSchemaKey]; agreed {
		return
	}
	seen := make(map[string]bool)
	var first *arrow.Schema
	var common map[string]string
	for _, f := range files {
		text, ok := f.Meta()[arrowSchemaKey]
		if !ok {
			return
		}
		if seen[text] {
			continue
		}
		seen[text] = true
		s, err := decodeArrow(text)
		if err != nil {
			return
		}
		own := s.Metadata().ToMap()
		if first == nil {
			first, common = s, own
			continue
		}
		if !s.Equal(first) { // but for the metadata
			return
		}
		for k, v := range common {
			if other, ok := own[k]; !ok || other != v {
				delete(common, k)
			}
		}
	}
	m := arrow.MetadataFrom(common)
	text, err := encodeArrow(arrow.NewSchema(first.Fields(), &m))
	if err != nil {
		return
	}
	if back, err := decodeArrow(text); err == nil && back.Equal(first) {
		meta[arrowSchemaKey] = text
	}
}

func decodeArrow(text string) (s *arrow.Schema, err error) {
	defer func() { // what another program wrote there must not kill the process
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("its Arrow schema is damaged: %v", p)
		}
	}()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return r.Schema(), nil
}

func encodeArrow(s *arrow.Schema) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", errors.New("its Arrow schema cannot be written")
		}
	}()
	var b bytes.Buffer
	if err := ipc.NewWriter(&b, ipc.WithSchema(s)).Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
