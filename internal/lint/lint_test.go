package lint

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hivesink/hivesink"

// levels: arrows point down only. A package imports packages of lower levels,
// and of its own level only where sideways says so.
var levels = map[string]int{
	"hivetype": 0, "layout": 0, "rolling": 0, "watermark": 0, "internal/fault": 0, "internal/krb5": 0, "internal/lint": 0, "internal/testproc": 0, "internal/watching": 0,
	"record": 1, "storage": 1, "storage/localfs": 1, "storage/memfs": 1, "storage/hdfsfs": 1, "storage/memobj": 1, "storage/s3fs": 1, "storage/spool": 1, "storage/faultfs": 1, "storage/storagetest": 1, "config": 1,
	"format": 2, "format/text": 2, "format/json": 2, "format/csv": 2, "format/avro": 2, "format/parquet": 2, "ledger": 2, "internal/kv": 2, "internal/place": 2, "internal/tlsopt": 2,
	"writer": 3, "coordinator": 3, "compactor": 3, "commit": 3,
	"source": 4, "source/kafka": 4, "maintenance": 4, "metastore": 4, "metastore/hive": 4, "metastore/metastoretest": 4, "metastore/hivetest": 4, "audit": 4,
	"pipeline":     5,
	"":             6,
	"cmd/hivesink": 7, "benchmarks": 7,
}

// sideways lists the imports within a level that are meant.
var sideways = map[string][]string{
	"layout":                  {"internal/fault"},
	"internal/krb5":           {"internal/fault"},
	"storage/localfs":         {"storage"},
	"storage/memfs":           {"storage"},
	"storage/faultfs":         {"storage"},
	"storage/hdfsfs":          {"storage"},
	"storage/memobj":          {"storage"},
	"storage/s3fs":            {"storage"},
	"storage/spool":           {"storage"},
	"storage/storagetest":     {"storage"},
	"format/text":             {"format"},
	"format/json":             {"format", "format/text"},
	"format/csv":              {"format", "format/text", "format/json"},
	"format/avro":             {"format", "format/text"},
	"format/parquet":          {"format"},
	"ledger":                  {"internal/kv"},
	"internal/place":          {"internal/tlsopt"},
	"metastore/metastoretest": {"metastore"},
	"source/kafka":            {"source"},
	"metastore/hive":          {"metastore"},
	"benchmarks/stages":       {"benchmarks/hotpath"},
	"test/mainjob":            {"test/services", "test/engines"},
	"test/engines":            {"test/services"},
	"benchmarks/guard":        {"benchmarks/hotpath"},
	"benchmarks/kafka":        {"test/services"},
	"test/services/cmd":       {"test/services"},
}

// homes: a foreign library is used in one package. Arrow batches may be
// anywhere, and the standard library is free.
var homes = map[string][]string{
	"github.com/parquet-go/parquet-go":       {"format/parquet"},
	"github.com/apache/arrow-go/v18/parquet": {"format/parquet"},
	"github.com/dgraph-io/badger":            {"internal/kv"},
	"go.yaml.in/yaml":                        {"config"},
	"github.com/spf13/pflag":                 {"cmd/hivesink"},
	"golang.org/x/term":                      {"cmd/hivesink"},
	"golang.org/x/sys":                       {"storage/localfs", "internal/kv"},
	"github.com/spaolacci/murmur3":           {"record"},
	"github.com/andybalholm/brotli":          {"format/parquet"},
	"github.com/klauspost/compress":          {"source", "source/kafka", "format/parquet"},
	"github.com/colinmarc/hdfs":              {"storage/hdfsfs"},
	"google.golang.org/protobuf":             {"storage/hdfsfs"},
	"github.com/jcmturner/gokrb5":            {"internal/krb5"},
	"github.com/twmb/franz-go":               {"source/kafka"},
	"github.com/twmb/avro":                   {"format/avro"},
	"github.com/pierrec/lz4":                 {"source/kafka"},
	"github.com/aws/aws-sdk-go-v2":           {"storage/s3fs"},
	"github.com/aws/smithy-go":               {"storage/s3fs"},
	"github.com/beltran/gohive":              {"metastore/hive", "metastore/hivetest"},
	"github.com/apache/thrift":               {"metastore/hive", "metastore/hivetest"},
}

// pure packages decide and never do: no clock, goroutine, randomness, I/O.
var pure = []string{"coordinator", "rolling", "watermark", "layout", "hivetype"}

var impure = []string{"os", "net", "math/rand", "math/rand/v2", "crypto/rand", "sync", "log", "log/slog", "io/fs", "context"}

type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func load(t *testing.T) map[string]pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := make(map[string]pkg)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[short(p.ImportPath)] = p
	}
	return pkgs
}

func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func levelOf(name string) (int, bool) {
	if strings.HasPrefix(name, "benchmarks") || strings.HasPrefix(name, "examples") || strings.HasPrefix(name, "test") {
		return 7, true
	}
	l, ok := levels[name]
	return l, ok
}

func TestArrowsPointDown(t *testing.T) {
	for name, p := range load(t) {
		level, ok := levelOf(name)
		if !ok {
			t.Errorf("package %q has no level: add it to levels in internal/lint, where its imports allow", name)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			to := short(imp)
			down, ok := levelOf(to)
			switch {
			case !ok || down < level:
			case down == level && slices.Contains(sideways[name], to):
			default:
				t.Errorf("%s (level %d) imports %s (level %d): arrows point down only; exchange values defined below both", name, level, to, down)
			}
		}
	}
}

func TestForeignLibrariesHaveOneHome(t *testing.T) {
	for name, p := range load(t) {
		if level, _ := levelOf(name); level == 7 && name != "cmd/hivesink" {
			continue // benchmarks compare libraries
		}
		for _, imp := range p.Imports {
			for lib, allowed := range homes {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(allowed, name) {
					t.Errorf("%s imports %s: only %s may; use that package instead", name, imp, strings.Join(allowed, " and "))
				}
			}
		}
	}
}

func TestPureCores(t *testing.T) {
	pkgs := load(t)
	for _, name := range pure {
		p, ok := pkgs[name]
		if !ok {
			t.Errorf("pure package %q does not exist", name)
			continue
		}
		for _, imp := range p.Imports {
			if slices.Contains(impure, imp) {
				t.Errorf("%s imports %s: it decides and does nothing; let the caller hand in what it needs", name, imp)
			}
		}
		for _, f := range p.GoFiles {
			checkPure(t, filepath.Join(p.Dir, f))
		}
	}
}

func checkPure(t *testing.T, file string) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s: a goroutine in a pure core", fset.Position(n.Pos()))
		case *ast.ChanType:
			t.Errorf("%s: a channel in a pure core", fset.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "Sleep") {
				t.Errorf("%s: time.%s in a pure core: let the caller hand in the time", fset.Position(n.Pos()), n.Sel.Name)
			}
		}
		return true
	})
}

// TestWritingByFullPath: a directory handle follows a renamed directory and so
// gets past the fence; all writing is by full path names.
func TestWritingByFullPath(t *testing.T) {
	for name, p := range load(t) {
		for _, f := range p.GoFiles {
			fset := token.NewFileSet()
			tree, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && (s.Sel.Name == "Root" || s.Sel.Name == "OpenRoot" || s.Sel.Name == "Chdir") {
						t.Errorf("%s (%s): os.%s gets past the fence; use full path names", fset.Position(s.Pos()), name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// TestZonesAreInTheBinary: the binary behaves the same on a host without a zone
// database (TZ-01).
func TestZonesAreInTheBinary(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"/cmd/hivesink", module).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !slices.Contains(strings.Fields(string(out)), "time/tzdata") {
		t.Error("time/tzdata is not linked")
	}
}
