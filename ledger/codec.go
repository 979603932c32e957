package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hivesink/hivesink/internal/fault"
)

// formatVersion of records and snapshots.
const formatVersion = 1

// A record or snapshot is one JSON object on one line; its last member is the
// SHA-256 of all bytes before that member.
const (
	sumBefore = `,"checksum":"`
	sumAfter  = "\"}\n"
)

func seal(v any) (data []byte, checksum string, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, "", err
	}
	body = body[:len(body)-1] // without the closing brace
	sum := sha256.Sum256(body)
	checksum = hex.EncodeToString(sum[:])
	return append(append(append(body, sumBefore...), checksum...), sumAfter...), checksum, nil
}

func unseal(data []byte, v any) (checksum string, err error) {
	tail := len(sumBefore) + 2*sha256.Size + len(sumAfter)
	if len(data) < tail+1 {
		return "", errors.New("it is cut short")
	}
	body := data[:len(data)-tail]
	end := data[len(data)-tail:]
	if !bytes.HasPrefix(end, []byte(sumBefore)) || !bytes.HasSuffix(end, []byte(sumAfter)) {
		return "", errors.New("it does not end with a checksum")
	}
	checksum = string(end[len(sumBefore) : len(sumBefore)+2*sha256.Size])
	sum := sha256.Sum256(body)
	if checksum != hex.EncodeToString(sum[:]) {
		return "", errors.New("its checksum does not match its bytes")
	}
	dec := json.NewDecoder(bytes.NewReader(append(body[:len(body):len(body)], '}')))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return "", err
	}
	return checksum, nil
}

// Encode returns a record's bytes and checksum.
func Encode(r *Record) (data []byte, checksum string, err error) { return seal(r) }

// Decode reads a record; name is for the error.
func Decode(name string, data []byte) (r *Record, checksum string, err error) {
	r = new(Record)
	if checksum, err = unseal(data, r); err != nil {
		return nil, "", damaged(name, err)
	}
	if r.Version != formatVersion {
		return nil, "", fault.New(fault.Halt, "use a newer hivesink", "log record %s has format version %d, this build reads %d", name, r.Version, formatVersion)
	}
	return r, checksum, nil
}

func damaged(name string, err error) error {
	return fault.Wrap(fault.Halt, "restore the file from a copy; nothing was changed", fmt.Errorf("log record %s is damaged: %w", name, err))
}
