package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hivesink/hivesink/hivetype"
)

// KafkaPlace is what source.kafka.start and until say: one of its fields, or
// the earliest or latest place.
type KafkaPlace struct {
	Earliest bool
	Latest   bool // also `end`
	Time     time.Time
	// Offsets by partition, "3" or "clicks/3"; "" is every partition.
	Offsets map[string]int64
}

// ParseKafkaPlace reads source.kafka.start.
func ParseKafkaPlace(text string) (KafkaPlace, error) {
	switch text {
	case "earliest":
		return KafkaPlace{Earliest: true}, nil
	case "latest", "end":
		return KafkaPlace{Latest: true}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return KafkaPlace{Time: at}, nil
	}
	p := KafkaPlace{Offsets: make(map[string]int64)}
	for item := range strings.SplitSeq(text, ",") {
		partition, offset, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			partition, offset = "", partition
		} else if number := partition[strings.LastIndex(partition, "/")+1:]; !isDigits(number) {
			return KafkaPlace{}, fmt.Errorf("%q names no partition", partition)
		}
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || n < 0 {
			return KafkaPlace{}, fmt.Errorf("%q is not a place in a topic", text)
		}
		if _, twice := p.Offsets[partition]; twice || partition == "" && strings.Contains(text, ",") {
			return KafkaPlace{}, fmt.Errorf("%q names a partition twice", text)
		}
		p.Offsets[partition] = n
	}
	return p, nil
}

// OffsetOf is the offset of a partition of a topic.
func (p KafkaPlace) OffsetOf(topic string, partition int32) (int64, bool) {
	number := strconv.Itoa(int(partition))
	for _, key := range []string{topic + "/" + number, number, ""} {
		if at, ok := p.Offsets[key]; ok {
			return at, true
		}
	}
	return 0, false
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

func (v *validator) kafka(k *Kafka) {
	if len(k.Brokers) == 0 {
		v.add("source.kafka.brokers", "such as [localhost:9092]", "is missing")
	}
	for i, b := range k.Brokers {
		if problem := addressProblem(b, 1); problem != "" {
			v.add(index("source.kafka.brokers", i), "such as localhost:9092", "%q %s", b, problem)
		}
	}
	v.topics(k)
	const places = "a time such as 2026-01-31T00:00:00Z, an offset such as 1200, or 0=1200,1=800"
	if _, err := ParseKafkaPlace(k.Start); err != nil || k.Start == "end" {
		v.add("source.kafka.start", "earliest, latest, "+places, "%q is not a place to start", k.Start)
	}
	if k.Until != "" {
		if _, err := ParseKafkaPlace(k.Until); err != nil || k.Until == "latest" || k.Until == "earliest" {
			v.add("source.kafka.until", "end, "+places, "%q is not a place to end", k.Until)
		}
	}
	v.metadata(&k.Metadata)
	v.tls("source.kafka.tls", k.TLS)
	v.sasl(k.SASL)
	v.registry(k.SchemaRegistry)
}

func (v *validator) topics(k *Kafka) {
	switch {
	case len(k.Topics) == 0 && k.TopicPattern == "":
		v.add("source.kafka.topics", "such as [clicks]", "is missing")
	case len(k.Topics) > 0 && k.TopicPattern != "":
		v.add("source.kafka.topic_pattern", "remove one", "is of no use beside topics")
	}
	v.distinct("source.kafka.topics", k.Topics)
	for i, t := range k.Topics {
		if t != "" && !topicName.MatchString(t) {
			v.add(index("source.kafka.topics", i), "a pattern belongs into source.kafka.topic_pattern", "%q is not the name of a topic", t)
		}
	}
	if _, err := regexp.Compile(k.TopicPattern); err != nil {
		v.add("source.kafka.topic_pattern", `such as "clicks-.*"`, "is not a regular expression: %v", err)
	}
}

// metadata checks that the columns exist and have fitting types.
func (v *validator) metadata(m *Metadata) {
	types := []struct {
		option string
		column *string
		fits   []string
	}{
		{"topic", &m.Topic, []string{"string"}},
		{"partition", &m.Partition, []string{"int", "bigint"}},
		{"offset", &m.Offset, []string{"bigint"}},
		{"timestamp", &m.Timestamp, []string{"timestamp"}},
		{"key", &m.Key, []string{"string", "binary"}},
		{"headers", &m.Headers, []string{"map<string,string>", "map<string,binary>"}},
	}
	seen := make(map[string]string)
	for _, t := range types {
		*t.column = strings.ToLower(*t.column)
		name, at := *t.column, "source.kafka.metadata."+t.option
		if name == "" {
			continue
		}
		if first, twice := seen[name]; twice {
			v.add(at, "", "%q is the column of %s already", name, first)
			continue
		}
		seen[name] = t.option
		if len(v.c.Table.Columns) == 0 {
			continue // they are the metastore's
		}
		f, ok := v.column(name)
		if !ok {
			v.add(at, v.nearColumn(name), "%q is not a column of the table", name)
		} else if f.Type != nil && !slices.Contains(t.fits, f.Type.String()) {
			v.add(at, "declare it as "+strings.Join(t.fits, " or "), "%q is %s", name, f.Type)
		}
	}
}

// Columns lists the columns that Metadata names.
func (m Metadata) Columns() []string {
	var out []string
	for _, c := range []string{m.Topic, m.Partition, m.Offset, m.Timestamp, m.Key, m.Headers} {
		if c != "" {
			out = append(out, c)
		}
	}
	return out
}

// raw checks that there is one column for a message's value.
func (v *validator) raw() {
	if v.c.Source.Kafka == nil {
		v.add("source.format", "use json or csv", "raw is the value of a message: it needs source.kafka")
		return
	}
	var left []hivetype.Field
	for _, f := range v.c.Table.Columns {
		if !slices.Contains(v.c.Source.Kafka.Metadata.Columns(), f.Name) {
			left = append(left, f)
		}
	}
	switch {
	case len(v.c.Table.Columns) == 0:
	case len(left) != 1:
		v.add("source.format", "name the others under source.kafka.metadata, or remove them",
			"raw fills one column, and %d are no metadata", len(left))
	case kindOf(left[0]) != hivetype.String && kindOf(left[0]) != hivetype.Binary && kindOf(left[0]) != hivetype.Invalid:
		v.add("source.format", "declare it as string or binary", "raw cannot fill %q, which is %s", left[0].Name, left[0].Type)
	}
}

func (v *validator) tls(at string, t *TLS) {
	switch {
	case t == nil:
	case t.Cert != "" && !t.Key.IsSet():
		v.add(at+".key", secretHint, "is missing: a certificate needs its key")
	case t.Cert == "" && t.Key.IsSet():
		v.add(at+".cert", "", "is missing: a key needs its certificate")
	}
}

func (v *validator) sasl(s *SASL) {
	const at = "source.kafka.sasl"
	switch {
	case s == nil:
	case s.Mechanism == MechanismGSSAPI:
		v.kerberos(at+".kerberos", &s.Kerberos)
	default:
		if s.Username == "" {
			v.add(at+".username", "", "is missing: %s needs it", s.Mechanism)
		}
		if !s.Password.IsSet() {
			v.add(at+".password", secretHint, "is missing: %s needs it", s.Mechanism)
		}
	}
}

func (v *validator) registry(r *SchemaRegistry) {
	const at = "source.kafka.schema_registry"
	if r == nil {
		if v.c.Source.Format == FormatAvro {
			v.add(at, "such as schema_registry: {url: http://localhost:8081}", "is missing: format avro needs it")
		}
		return
	}
	if r.URL == "" {
		v.add(at+".url", "such as http://localhost:8081", "is missing")
		return
	}
	for text := range strings.SplitSeq(r.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		switch {
		case err == nil && u.User != nil:
			// The text is not repeated: it has a password in it (G7).
			v.add(at+".url", "use username and password of schema_registry", "has a user in it")
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.add(at+".url", "such as http://localhost:8081", "is not the address of a registry")
		}
	}
	v.tls(at+".tls", r.TLS)
	if r.Password.IsSet() != (r.Username != "") {
		v.add(at+".username", "give both", "username and password belong together")
	}
}
