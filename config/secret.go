package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hivesink/hivesink/internal/fault"
)

// Secret says where a password, key or token is found: in a file or in a
// variable of the environment. It holds the reference only, never the value
// (G7), so that no print, log, panic or dump of a config can give it away; to
// be safe against later change it prints as *** all the same. Read gets the
// value, at the moment it is used.
type Secret struct {
	File string // path of a file that holds it; a line end after it is not part of it
	Env  string // name of an environment variable that holds it
}

// hidden is what a secret prints as.
const hidden = "***"

// secretHint is how a secret is written.
const secretHint = "write {file: PATH} or {env: NAME}: secrets do not belong into a config"

// maxSecretBytes is the largest secret; a larger file is something else.
const maxSecretBytes = 1 << 20

// IsSet says whether there is a reference.
func (s Secret) IsSet() bool { return s != Secret{} }

// Read gets the value. option is the path of the option, for errors: they name
// it and the reference, never the value. Their class is fault.Config.
func (s Secret) Read(option string) (string, error) {
	switch {
	case s.File != "" && s.Env != "":
		return "", fault.New(fault.Config, "give one of them", "%s: names a file and a variable", option)
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok || value == "" {
			return "", fault.New(fault.Config, "export it, or write {file: PATH}", "%s: the environment variable %s is not set", option, s.Env)
		}
		return value, nil
	case s.File == "":
		return "", fault.New(fault.Config, secretHint, "%s: is missing", option)
	}
	f, err := os.Open(s.File)
	if err != nil {
		return "", fault.Wrap(fault.Config, "the process must be able to read it; paths start at the working directory", fmt.Errorf("%s: %w", option, err))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fault.Wrap(fault.Config, "", fmt.Errorf("%s: read %s: %w", option, s.File, err))
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case len(data) > maxSecretBytes:
		return "", fault.New(fault.Config, "is it the right file?", "%s: %s is larger than %d bytes", option, s.File, maxSecretBytes)
	case value == "":
		return "", fault.New(fault.Config, "", "%s: %s is empty", option, s.File)
	}
	return value, nil
}

// String is ***, or empty for no secret.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return hidden
}

// Format prints *** for every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText gives *** to JSON and other encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue gives *** to log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// secretNode prints the reference, as Parse reads it (G4).
func secretNode(s Secret) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
	if s.File != "" {
		m.Content = append(m.Content, text("file"), text(s.File))
	}
	if s.Env != "" {
		m.Content = append(m.Content, text("env"), text(s.Env))
	}
	if len(m.Content) == 0 {
		return nil
	}
	return m
}

// secret decodes a reference. What is not one may be the secret itself: no
// problem repeats a word of it.
func (d *decoder) secret(n *yaml.Node, p *Secret, path string) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, secretHint, "holds a value where a reference belongs")
		return
	}
	var got Secret
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := target(n.Content[i]), target(n.Content[i+1])
		to := (*string)(nil)
		if key != nil && key.Kind == yaml.ScalarNode {
			switch key.Value {
			case "file":
				to = &got.File
			case "env":
				to = &got.Env
			}
		}
		switch {
		case to == nil:
			d.problem(n.Content[i], path, secretHint, "has a key that is neither file nor env")
			return
		case *to != "":
			d.problem(n.Content[i], path, "remove one", "has %s twice", key.Value)
			return
		case value == nil || value.Kind != yaml.ScalarNode || value.Tag == "!!null" || value.Value == "":
			d.problem(n.Content[i+1], path, secretHint, "%s names nothing", key.Value)
			return
		}
		*to = value.Value
		d.where[join(path, key.Value)] = d.at(n.Content[i+1])
	}
	switch {
	case got.File != "" && got.Env != "":
		d.problem(n, path, "remove one", "has file and env")
		return
	case got == Secret{}:
		d.problem(n, path, secretHint, "is empty")
		return
	}
	*p = got
}
