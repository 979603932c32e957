package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
)

// formatVersion of records and snapshots. Members are added without another one:
// who does not know them refuses the record (unknownMember). It changes when
// what a member says does.
const formatVersion = 1

// A record or snapshot is one JSON object on one line; its last member is the
// SHA-256 of all bytes before that member (T1).
const (
	sumBefore = `,"checksum":"`
	sumAfter  = "\"}\n"
	sumBytes  = len(sumBefore) + 2*sha256.Size + len(sumAfter)
)

func sealJSON(v any) (data []byte, checksum string, err error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(v); err != nil {
		return nil, "", err
	}
	body := bytes.TrimSuffix(buf.Bytes(), []byte("}\n"))
	checksum = checksumOf(body)
	return append(append(append(body, sumBefore...), checksum...), sumAfter...), checksum, nil
}

func checksumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// unseal checks the bytes and returns the object without its checksum.
func unseal(data []byte) (whole []byte, checksum string, err error) {
	if len(data) < sumBytes+1 {
		return nil, "", fmt.Errorf("it has %d bytes only", len(data))
	}
	body, tail := data[:len(data)-sumBytes], data[len(data)-sumBytes:]
	checksum = checksumOf(body)
	if want := sumBefore + checksum + sumAfter; string(tail) != want {
		if bytes.HasPrefix(tail, []byte(sumBefore)) && bytes.HasSuffix(tail, []byte(sumAfter)) {
			return nil, "", errors.New("its bytes do not match its checksum")
		}
		return nil, "", errors.New("it does not end with a checksum")
	}
	return append(body[:len(body):len(body)], '}'), checksum, nil
}

// unsealJSON checks the bytes and decodes them strictly.
func unsealJSON(data []byte, v any) (checksum string, err error) {
	whole, checksum, err := unseal(data)
	if err != nil {
		return "", err
	}
	if err := checkFormat(whole); err != nil {
		return "", err
	}
	if err := decodeStrictly(whole, v); err != nil {
		return "", unknownMember(err)
	}
	return checksum, nil
}

// decodeStrictly decodes one object, and refuses what it does not know: a fact
// that is passed over is lost.
func decodeStrictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is more after the object")
	}
	return nil
}

// newerError says that the bytes are what was written, by a hivesink that
// knows more than this one. To restore them from a copy would lose facts.
type newerError struct{ what string }

func (e *newerError) Error() string { return e.what }

const newerHint = "use the hivesink that wrote it, or a newer one; nothing was changed"

// unknownMember tells a member that is not known here, of bytes that match their
// checksum, from damage. The library has no error of its own for it.
func unknownMember(err error) error {
	member, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return err
	}
	return fault.Wrap(fault.Halt, newerHint, &newerError{"it has the member " + member + ", which this hivesink does not know"})
}

// ourFormat begins what we write.
var ourFormat = fmt.Appendf(nil, `{"v":%d,`, formatVersion)

// checkFormat refuses other versions. Those that begin as ours do need no
// second look, which for a snapshot costs as much as reading it.
func checkFormat(whole []byte) error {
	if bytes.HasPrefix(whole, ourFormat) {
		return nil
	}
	var format struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(whole, &format); err != nil {
		return err
	}
	if format.V != formatVersion {
		return fault.Wrap(fault.Halt, newerHint, &newerError{fmt.Sprintf("it has format version %d, this hivesink reads version %d", format.V, formatVersion)})
	}
	return nil
}

// Encode returns a record's bytes and checksum. What JSON cannot carry (text
// that is not UTF-8) is refused: it would come back as something else.
func Encode(r *Record) (data []byte, checksum string, err error) {
	data, checksum, err = sealJSON(r)
	if err != nil {
		return nil, "", fmt.Errorf("encode log record %d: %w", r.Seq, err)
	}
	if !bytes.Contains(data, []byte(`\ufffd`)) {
		return data, checksum, nil
	}
	back := new(Record)
	if _, err := unsealJSON(data, back); err != nil || !reflect.DeepEqual(r, back) {
		return nil, "", fault.New(fault.Halt, "rename the source or partition", "log record %d: a name or position in it is not UTF-8 text", r.Seq)
	}
	return data, checksum, nil
}

// Decode reads a record and its checksum back, strictly: any changed byte and
// any unknown member is an error of class Halt. name is for the error.
func Decode(name string, data []byte) (r *Record, checksum string, err error) {
	r = new(Record)
	if checksum, err = unsealJSON(data, r); err != nil {
		return nil, "", damaged("record", name, err, "")
	}
	return r, checksum, nil
}

// damaged says which file is damaged, why, and what depends on it (may be
// empty).
func damaged(what, name string, cause error, affected string) error {
	hint := "restore the file from a copy of the table and start again; nothing was changed"
	var classed *fault.Error
	if errors.As(cause, &classed) {
		hint = "" // the cause has a better one
	}
	var newer *newerError
	if errors.As(cause, &newer) {
		return fault.Wrap(fault.Halt, "", fmt.Errorf("log %s %s is of a newer hivesink: %w", what, name, cause))
	}
	if affected != "" {
		affected = "; affected: " + affected
	}
	return fault.Wrap(fault.Halt, hint, fmt.Errorf("log %s %s is damaged: %w%s", what, name, cause, affected))
}
