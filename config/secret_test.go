package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
)

// planted is what must never be seen (G7).
const planted = "hunter2-do-not-print"

const secretBase = `pipeline: p
table: {name: t, location: /w/t, columns: [id bigint]}
source:
  kafka:
    brokers: [b:9092]
    topics: [t]
    sasl:
      username: u
      password: `

// A secret that was read and everything around it is printed in every way
// there is: the value is nowhere.
func TestSecretIsNeverPrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(planted+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HIVESINK_TEST_SECRET", planted)
	for _, ref := range []string{"{file: " + file + "}", "{env: HIVESINK_TEST_SECRET}"} {
		c, err := Parse("c.yaml", []byte(secretBase+ref), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := c.Source.Kafka.SASL.Password
		if got, err := s.Read("source.kafka.sasl.password"); err != nil || got != planted {
			t.Fatalf("Read = %q, %v", got, err)
		}
		text, err := c.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "sasl", c.Source.Kafka.SASL, "config", c)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "sasl", c.Source.Kafka.SASL)
		out := []string{string(text), string(asJSON), log.String(), fmt.Sprint(errors.New(s.String()))}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			one := fmt.Sprintf(verb, s)
			if one != hidden {
				t.Errorf("%s prints %s", verb, one)
			}
			out = append(out, one, fmt.Sprintf(verb, *c.Source.Kafka.SASL), fmt.Sprintf(verb, c))
		}
		func() {
			defer func() { out = append(out, fmt.Sprint(recover())) }()
			panic(c.Source.Kafka.SASL)
		}()
		for _, text := range out {
			if strings.Contains(text, planted) {
				t.Errorf("the secret is in %s", text)
			}
		}
		if string(asJSON) != `"***"` || !strings.Contains(log.String(), "secret=***") {
			t.Errorf("JSON %s, log %s", asJSON, log.String())
		}
		if again := marshal(t, c); !strings.Contains(again, strings.TrimSuffix(ref, "}")) {
			t.Errorf("Marshal lost the reference %s (G4):\n%s", ref, again)
		}
	}
}

// Wherever somebody writes the secret itself, it is refused with advice, and
// no problem repeats it.
func TestLiteralSecretIsRefused(t *testing.T) {
	base := strings.TrimSuffix(secretBase, "      password: ")
	for name, c := range map[string]struct {
		text string
		sets []string
		want string
	}{
		"literal":       {text: secretBase + planted, want: "c.yaml:9:17: source.kafka.sasl.password: holds a value where a reference belongs (write {file: PATH} or {env: NAME}"},
		"number":        {text: secretBase + "0x1", want: "holds a value"},
		"list":          {text: secretBase + "[" + planted + "]", want: "holds a value"},
		"unknown key":   {text: secretBase + "{value: " + planted + "}", want: "neither file nor env"},
		"as key":        {text: secretBase + "{" + planted + ": x}", want: "neither file nor env"},
		"twice":         {text: secretBase + "{file: a, file: " + planted + "}", want: "has file twice"},
		"both":          {text: secretBase + "{file: a, env: B}", want: "has file and env"},
		"nothing":       {text: secretBase + "{file: }", want: "file names nothing"},
		"empty":         {text: secretBase + "{}", want: "is empty"},
		"missing":       {text: base, want: "source.kafka.sasl.password: is missing"},
		"alias":         {text: secretBase + "*" + planted, want: "quote values that start with a special character"},
		"typo":          {text: base + "      pasword: " + planted, want: "did you mean source.kafka.sasl.password"},
		"section":       {text: strings.Split(base, "    sasl:")[0] + "    sasl: " + planted, want: "wants keys and values"},
		"flag":          {text: base, sets: []string{"source.kafka.sasl.password=" + planted}, want: "--set source.kafka.sasl.password=***: source.kafka.sasl.password: holds a value"},
		"flag, section": {text: base, sets: []string{"source.kafka.sasl={password: " + planted + "}"}, want: "--set source.kafka.sasl=***"},
		"flag, typo":    {text: base, sets: []string{"source.kafka.sasl.pasword=" + planted}, want: "--set source.kafka.sasl.pasword=***"},
		"flag, root":    {text: base, sets: []string{"sasl={password: " + planted + "}"}, want: "--set sasl=***"},
		"in the url": {text: base + "      password: {env: X}\n    schema_registry: {url: 'http://u:" + planted + "@h:1'}",
			want: "source.kafka.schema_registry.url: has a user in it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("c.yaml", []byte(c.text), c.sets)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), planted) {
				t.Errorf("the secret is in: %v", err)
			}
		})
	}
}

// What cannot be read names the option, the reference and the remedy.
func TestSecretRead(t *testing.T) {
	dir := t.TempDir()
	empty, large := filepath.Join(dir, "empty"), filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(empty, []byte("\n"), 0o600), os.WriteFile(large, make([]byte, maxSecretBytes+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HIVESINK_TEST_EMPTY", "")
	for _, c := range []struct {
		s    Secret
		want string
	}{
		{Secret{}, "is missing (write {file: PATH} or {env: NAME}"},
		{Secret{File: "a", Env: "b"}, "names a file and a variable"},
		{Secret{Env: "HIVESINK_TEST_EMPTY"}, "the environment variable HIVESINK_TEST_EMPTY is not set"},
		{Secret{Env: "HIVESINK_TEST_NOT_SET"}, "the environment variable HIVESINK_TEST_NOT_SET is not set"},
		{Secret{File: filepath.Join(dir, "none")}, "no such file"},
		{Secret{File: empty}, "is empty"},
		{Secret{File: large}, "is larger than 1048576 bytes"},
		{Secret{File: dir}, "is a directory"},
	} {
		_, err := c.s.Read("x.password")
		if err == nil || !strings.HasPrefix(err.Error(), "x.password: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#v: got %v, want %s", c.s.File+c.s.Env, err, c.want)
		}
		if fault.ClassOf(err) != fault.Config {
			t.Errorf("class %s", fault.ClassOf(err))
		}
	}
}
