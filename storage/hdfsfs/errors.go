package hdfsfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// outcome is what an error says about the operation it came from (H5).
type outcome int

const (
	// answered: done, or not done for a reason that stays.
	answered outcome = iota
	// postponed: not done, for a reason that passes by itself.
	postponed
	// unknown: no answer, or none that can be understood. The session is of no
	// use any more.
	unknown
)

// remoteError is what a name node answered, with the first line of its message:
// the client's text has the exception's class only.
type remoteError struct {
	err     error
	message string
}

func (e *remoteError) Error() string {
	if e.message == "" {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.message
}

func (e *remoteError) Unwrap() error { return e.err }

// refusals are the exceptions that stay, as this project's errors.
var refusals = map[string]error{
	"FileNotFoundException":            fs.ErrNotExist,
	"FileAlreadyExistsException":       fs.ErrExist,
	"AlreadyBeingCreatedException":     fs.ErrExist,
	"PathIsNotEmptyDirectoryException": fs.ErrExist,
	"AccessControlException":           fs.ErrPermission,
	"AuthorizationException":           fs.ErrPermission,
	"InvalidPathException":             fs.ErrInvalid,
	"HadoopIllegalArgumentException":   fs.ErrInvalid,
	"ParentNotDirectoryException":      fs.ErrInvalid,
}

// passing are the exceptions after which the same call may work later: the name
// node starts, changes sides, is busy; a quota is used up.
var passing = map[string]bool{
	"SafeModeException": true, "RetriableException": true, "StandbyException": true, "ObserverRetryOnActiveException": true,
	"NotReplicatedYetException": true, "ServerTooBusyException": true, "RpcServerException": true,
	"NSQuotaExceededException": true, "DSQuotaExceededException": true, "QuotaByStorageTypeExceededException": true, "QuotaExceededException": true,
}

// judge says what an error of the client means, and in what words to pass it on.
func judge(err error) (outcome, error) {
	if err == nil {
		return answered, nil
	}
	var classed *fault.Error
	if errors.As(err, &classed) {
		return answered, err
	}
	var remote hdfs.Error
	if errors.As(err, &remote) {
		return judgeRemote(remote)
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return unknown, err // a firewall's "operation not permitted" is not the name node's
	}
	for _, known := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid} {
		if errors.Is(err, known) {
			var p *os.PathError
			if errors.As(err, &p) {
				err = p.Err
			}
			return answered, err
		}
	}
	return unknown, err
}

func judgeRemote(remote hdfs.Error) (outcome, error) {
	class := remote.Exception()[strings.LastIndexAny(remote.Exception(), ".$")+1:]
	line, _, _ := strings.Cut(remote.Message(), "\n")
	err, _ := remote.(error)
	said := &remoteError{err, line}
	if known, ok := refusals[class]; ok {
		return answered, &remoteError{known, line}
	}
	if option := outOfBounds(remote.Method(), line); option != "" {
		return answered, fault.Wrap(fault.Config, "what the name node allows is in dfs.namenode.fs-limits.min-block-size, dfs.namenode.replication.min and dfs.replication.max there",
			fmt.Errorf("%s: %w", option, said))
	}
	if passing[class] {
		if strings.Contains(class, "Quota") {
			return postponed, &storage.NoSpaceError{Err: said}
		}
		return postponed, said
	}
	switch {
	case remote.Method() == "addBlock" && class == "IOException":
		// "could only be written to 0 of the 1 minReplication nodes": they are
		// down, or full.
		return postponed, said
	case strings.Contains(line, "SafeModeException") || strings.Contains(line, "in safe mode"): // wrapped
		return postponed, said
	case remote.Method() == "sasl" || strings.HasPrefix(remote.Desc(), "FATAL"):
		return unknown, said // the connection is gone
	}
	return answered, said
}

// outOfBounds names the option of a new file's property that the name node does
// not allow, in an exception that has no class of its own: no try is better.
func outOfBounds(method, line string) string {
	switch {
	case method != "create":
	case strings.Contains(line, "block size is less than"):
		return "hdfs.block_size (or dfs.blocksize of the Hadoop configuration)"
	case strings.Contains(line, "Requested replication factor"):
		return "hdfs.replication (or dfs.replication of the Hadoop configuration)"
	}
	return ""
}

// wrap names operation and path (storage S3).
func (f *FS) wrap(op storage.OpKind, name, to string, err error) error {
	if err == nil {
		return nil
	}
	var classed *fault.Error
	if errors.As(err, &classed) {
		return &fault.Error{Class: classed.Class, Hint: classed.Hint, Err: &storage.Error{Op: op, Name: name, To: to, Err: classed.Err}}
	}
	err = &storage.Error{Op: op, Name: name, To: to, Err: err}
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.Halt, fmt.Sprintf("give user %s access below table.location, or set hdfs.user or hdfs.kerberos.principal", f.who()), err)
	}
	return err
}

// gaveUp is the error of an operation that waited in vain.
func (f *FS) gaveUp(waited string, err error) error {
	if !f.worked.Load() {
		return fault.Wrap(fault.Retry, f.startHint(err),
			fmt.Errorf("table.location hdfs://%s: no answer from %s in %s: %w", f.o.Authority, strings.Join(f.o.NameNodes, ", "), waited, err))
	}
	return fault.Wrap(fault.Retry, "start again when the cluster is well; nothing is lost", fmt.Errorf("waited %s for HDFS: %w", waited, err))
}

// garbledAnswer is how the client puts it. It may be said once only: on the next
// try the name node may have hung up before it was asked.
const garbledAnswer = "unexpected sequence number"

// startHint says which option to look at when the first call gets no answer.
func (f *FS) startHint(err error) string {
	text := err.Error()
	switch {
	case f.garbled.Load() && f.o.Kerberos == nil:
		return "the cluster seems to ask for Kerberos: set hdfs.kerberos"
	case strings.Contains(text, "kerberos authentication not supported"):
		return "the cluster does not use Kerberos: remove hdfs.kerberos"
	case strings.Contains(text, "SASL") || strings.Contains(text, "KRB"):
		return "check hdfs.kerberos and the KDC of its krb5_conf"
	case strings.Contains(text, "in safe mode"):
		return "the name node is in safe mode: wait, or see what it waits for by hdfs dfsadmin -safemode get"
	}
	return "check table.location and hdfs.namenodes"
}
