package hdfsfs

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// calls makes calls of the name node's protocol that the client has no method
// for: a rename that does not replace (H1), a delete that says whether there was
// anything. The client keeps its connection to itself, so it is taken out of
// its field; the messages are those that its package registers. A version of
// the client in which this does not work is refused at once, and by a test.
type calls struct {
	execute func(method string, req, resp proto.Message) error
}

var errForeignClient = errors.New("this version of github.com/colinmarc/hdfs/v2 has another name node connection than the one this was written for")

func newCalls(c *hdfs.Client) (*calls, error) {
	field := reflect.ValueOf(c).Elem().FieldByName("namenode")
	if !field.IsValid() || field.Kind() != reflect.Pointer {
		return nil, errForeignClient
	}
	method := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().MethodByName("Execute")
	if !method.IsValid() {
		return nil, errForeignClient
	}
	execute, ok := method.Interface().(func(string, proto.Message, proto.Message) error)
	if !ok {
		return nil, errForeignClient
	}
	return &calls{execute}, nil
}

// message makes a message of the name node's protocol and sets fields of it:
// name, value, name, value.
func message(name protoreflect.FullName, fields ...any) (protoreflect.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName("hadoop.hdfs." + name)
	if err != nil {
		return nil, errors.Join(errForeignClient, err)
	}
	m := kind.New()
	for i := 0; i+1 < len(fields); i += 2 {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(fields[i].(string)))
		if f == nil {
			return nil, errForeignClient
		}
		m.Set(f, protoreflect.ValueOf(fields[i+1]))
	}
	return m, nil
}

// call makes one call; prefix begins the names of both messages.
func (c *calls) call(method string, prefix protoreflect.FullName, fields ...any) (protoreflect.Message, error) {
	req, err := message(prefix+"RequestProto", fields...)
	if err != nil {
		return nil, err
	}
	resp, err := message(prefix + "ResponseProto")
	if err != nil {
		return nil, err
	}
	return resp, c.execute(method, req.Interface(), resp.Interface())
}

// get reads a field of a message.
func get(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

// rename moves a file or directory; without overwrite a taken name is
// FileAlreadyExistsException.
func (c *calls) rename(from, to string, overwrite bool) error {
	_, err := c.call("rename2", "Rename2", "src", from, "dst", to, "overwriteDest", overwrite)
	return err
}

// remove says whether there was anything to remove. A directory must be empty.
func (c *calls) remove(name string) (bool, error) {
	resp, err := c.call("delete", "Delete", "src", name, "recursive", false)
	if err != nil {
		return false, err
	}
	return get(resp, "result").Bool(), nil
}

// defaults are what the name node says new files should be like, and whether
// data is encrypted on its way.
func (c *calls) defaults() (replication int, blockSize int64, encrypts bool, err error) {
	resp, err := c.call("getServerDefaults", "GetServerDefaults")
	if err != nil {
		return 0, 0, false, err
	}
	d := get(resp, "serverDefaults").Message()
	return int(get(d, "replication").Uint()), int64(get(d, "blockSize").Uint()), get(d, "encryptDataTransfer").Bool(), nil
}
