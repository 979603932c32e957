package config

import (
	"strings"
)

func (v *validator) metastore() {
	m := &v.c.Metastore
	if m.Type != MetastoreHive {
		if m.URI != "" {
			v.add("metastore.uri", "add type: hive, or remove uri", "is of no use with type %s", m.Type)
		}
		return
	}
	if m.URI == "" {
		v.add("metastore.uri", "such as thrift://localhost:9083", "is missing: type hive needs it")
	}
	for _, address := range m.Addresses() {
		host, ok := strings.CutPrefix(address, "thrift://")
		if problem := addressProblem(host, 1); !ok || problem != "" {
			v.add("metastore.uri", "thrift://host:port, several separated by commas", "%q is not an address", address)
		}
	}
	if l := m.Location; l != "" && !strings.Contains(l, ":/") {
		v.add("metastore.location", "such as s3a://bucket/path", "%q is not a URI", l)
	}
	v.metastoreSASL(m.SASL)
}

func (v *validator) metastoreSASL(s *MetastoreSASL) {
	switch {
	case s == nil:
	case s.Mechanism == MechanismPlain:
		if s.Username == "" {
			v.add("metastore.sasl.username", "", "is missing: PLAIN needs it")
		}
		if !s.Password.IsSet() {
			v.add("metastore.sasl.password", secretHint, "is missing: PLAIN needs it")
		}
	case s.Mechanism == MechanismGSSAPI:
		v.kerberos("metastore.sasl.kerberos", &s.Kerberos)
	}
}

// Addresses are those of uri, each as it was written: thrift://host:port.
func (m *Metastore) Addresses() []string {
	if m.URI == "" {
		return nil
	}
	var out []string
	for uri := range strings.SplitSeq(m.URI, ",") {
		out = append(out, strings.TrimSpace(uri))
	}
	return out
}
