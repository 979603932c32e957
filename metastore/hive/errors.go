package hive

import (
	"errors"
	"fmt"

	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
)

// answered says whether err is what the server said, so that the connection is
// in order.
func answered(err error) bool {
	_, ok := said(err)
	return ok || noMethod(err) || broke(err)
}

// broke says whether the server met an error that it does not declare. It says so
// in an answer, and goes on.
func broke(err error) bool {
	var app thrift.TApplicationException
	return errors.As(err, &app) && app.TypeId() == thrift.INTERNAL_ERROR
}

// said is the message of an exception that the Hive Metastore declares.
func said(err error) (text string, ok bool) {
	var exists *hms.AlreadyExistsException
	var missing *hms.NoSuchObjectException
	var object *hms.InvalidObjectException
	var operation *hms.InvalidOperationException
	var input *hms.InvalidInputException
	var meta *hms.MetaException
	var database *hms.UnknownDBException
	var table *hms.UnknownTableException
	switch {
	case errors.As(err, &exists):
		return "already exists: " + exists.Message, true
	case errors.As(err, &missing):
		return "no such object: " + missing.Message, true
	case errors.As(err, &object):
		return "invalid object: " + object.Message, true
	case errors.As(err, &operation):
		return "invalid operation: " + operation.Message, true
	case errors.As(err, &input):
		return "invalid input: " + input.Message, true
	case errors.As(err, &meta):
		return meta.Message, true
	case errors.As(err, &database):
		return "unknown database: " + database.Message, true
	case errors.As(err, &table):
		return "unknown table: " + table.Message, true
	}
	return "", false
}

// noMethod says whether the server does not know the call.
func noMethod(err error) bool {
	var app thrift.TApplicationException
	return errors.As(err, &app) && app.TypeId() == thrift.UNKNOWN_METHOD
}

// gone says whether what the call was about is not there.
func gone(err error) bool {
	var missing *hms.NoSuchObjectException
	var database *hms.UnknownDBException
	var table *hms.UnknownTableException
	return errors.As(err, &missing) || errors.As(err, &database) || errors.As(err, &table)
}

func alreadyExists(err error) bool {
	var exists *hms.AlreadyExistsException
	return errors.As(err, &exists)
}

// explain words an exception of the server; the generated types print little
// that a person can use.
func (c *client) explain(conn *connection, what string, err error) error {
	text, ok := said(err)
	if err == nil {
		return nil
	}
	switch {
	case ok:
	case noMethod(err):
		text = "the server does not know this call"
	default:
		text = err.Error()
	}
	return fault.Wrap(fault.Retry, "", &serverError{fmt.Sprintf("the metastore at %s: %s: %s", conn.address, what, text), err})
}

// serverError is an exception of the server in words. Its class is retry:
// somebody may mend there what it complains of, and nothing here is lost
// meanwhile.
type serverError struct {
	text  string
	cause error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.cause }
