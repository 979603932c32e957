//go:build integration

package kafkatest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

// registerSchema puts a schema into the registry and returns its id.
func registerSchema(t *testing.T, subject, schema string, references ...map[string]any) int32 {
	t.Helper()
	body, err := json.Marshal(map[string]any{"schema": schema, "schemaType": "AVRO", "references": references})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(services.RegistryURL()+"/subjects/"+subject+"/versions", "application/vnd.schemaregistry.v1+json", bytes.NewReader(body))
	if err != nil {
		t.Fatalf("is the service up? go run ./test/services/cmd up registry: %v", err)
	}
	defer resp.Body.Close()
	var a struct {
		ID      int32  `json:"id"`
		Message string `json:"message"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("register: %s %s %v", resp.Status, a.Message, err)
	}
	return a.ID
}

// wire is a value as a registry's serialiser writes it.
func wire(t *testing.T, id int32, schema string, v any) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.AppendEncode(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)), v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Records of two versions of a schema, from a real registry.
func TestAvro(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.format = "avro"
	w.columns = `[id bigint, name string, "amount decimal(10,2)", at timestamp, tags array<string>, extra string]`
	w.options = []string{"until: end", "schema_registry: {url: \"" + services.RegistryURL() + "\"}"}
	const v1 = `{"type":"record","name":"Ev","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"]},
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
		{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"tags","type":{"type":"array","items":"string"}},{"name":"other","type":"int"}]}`
	v2 := strings.Replace(v1, `{"name":"other","type":"int"}`, `{"name":"extra","type":["null","string"],"default":null}`, 1)
	one, two := registerSchema(t, w.topic+"-value", v1), registerSchema(t, w.topic+"-value", v2)
	if one == two {
		t.Fatal("both versions have one id")
	}
	event := func(id int) map[string]any {
		return map[string]any{"id": int64(id), "name": fmt.Sprint("n", id), "amount": json.Number("12.34"), "at": int64(1_700_000_000_123), "tags": []string{"a", "b"}, "other": int32(1), "extra": "x"}
	}
	var records []*kgo.Record
	for i := range 100 {
		if i%2 == 0 {
			records = append(records, &kgo.Record{Value: wire(t, one, v1, event(i))})
		} else {
			records = append(records, &kgo.Record{Value: wire(t, two, v2, event(i))})
		}
	}
	good := wire(t, one, v1, event(1000))
	records = append(records,
		&kgo.Record{Value: []byte("{}")},                              // no magic byte
		&kgo.Record{Value: []byte{0, 0}},                              // too short
		&kgo.Record{Value: append([]byte{0, 0x7f, 0, 0, 0}, good...)}, // no such schema
		&kgo.Record{Value: good[:len(good)-1]},                        // cut
		&kgo.Record{Value: append(good[:len(good):len(good)], 0)},     // too long
	)
	w.produce(records...)
	if s := w.run(); s.RowsRead != 105 || s.RowsBad != 5 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, 99)
	for _, r := range w.rows(w.location()) {
		id := r["id"].(int64)
		extra := any(nil)
		if id%2 == 1 {
			extra = "x"
		}
		if r["name"] != fmt.Sprint("n", id) || r["amount"] != int64(1234) || r["at"] != int64(1_700_000_000_123_000) || r["extra"] != extra ||
			fmt.Sprint(r["tags.list.element"]) != "[a b]" {
			t.Fatalf("%v", r)
		}
	}
	w.fsck()
}

// A schema that refers to another one.
func TestAvroReference(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.format, w.columns = "avro", "[id bigint, \"place struct<city:string>\"]"
	w.options = []string{"until: end", "schema_registry: {url: \"" + services.RegistryURL() + "\"}"}
	const place = `{"type":"record","name":"Place","namespace":"geo","fields":[{"name":"city","type":"string"}]}`
	registerSchema(t, w.topic+"-place", place)
	const event = `{"type":"record","name":"Ev","fields":[{"name":"id","type":"long"},{"name":"place","type":"geo.Place"}]}`
	id := registerSchema(t, w.topic+"-value", event, map[string]any{"name": "geo.Place", "subject": w.topic + "-place", "version": 1})
	w.produce(&kgo.Record{Value: append(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)), 2, 8, 'B', 'o', 'n', 'n')})
	if s := w.run(); s.RowsRead != 1 || s.RowsBad != 0 {
		t.Errorf("%+v", s)
	}
	if rows := w.rows(w.location()); len(rows) != 1 || fmt.Sprint(rows[0]["place.city"]) != "[Bonn]" && rows[0]["place.city"] != "Bonn" {
		t.Errorf("%v", rows)
	}
}

// A registry that is not there ends the start; one that goes away while the run
// needs it is waited for.
func TestRegistryOutage(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.format, w.columns = "avro", "[id bigint]"
	w.options = []string{"start_timeout: 2s", "schema_registry: {url: \"http://localhost:1\"}"}
	p := w.start()
	if code := p.wait(); code != 2 || !strings.Contains(p.Log(), "source.kafka.schema_registry.url") {
		t.Errorf("exit code %d:\n%s", code, p.Log())
	}
	const schema = `{"type":"record","name":"E","fields":[{"name":"id","type":"long"}]}`
	id := registerSchema(t, w.topic+"-value", schema)
	proxy := newGate(t, strings.Split(strings.TrimPrefix(services.RegistryURL(), "http://"), "/")[0])
	w.options = []string{"schema_registry: {url: \"http://" + proxy.addr + "/apis/ccompat/v7\"}"}
	p = w.start()
	eventually(t, "the start to be durable", func() error { return w.committed(0) })
	proxy.close()
	w.produce(&kgo.Record{Value: wire(t, id, schema, map[string]any{"id": int64(7)})})
	p.await("asking the schema registry failed; trying again")
	proxy.open()
	p.await("the schema registry answers again")
	eventually(t, "the row", func() error { return w.committed(1) })
	if s := p.stop(); s.RowsRead != 1 || s.RowsBad != 0 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(7, 7)
}
