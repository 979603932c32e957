package services

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// Postgres is the address of PostgreSQL.
const Postgres = "127.0.0.1:15432"

const (
	postgresUser     = "hive"
	postgresPassword = "hive"
)

func init() {
	register(Service{Name: "postgres", About: "PostgreSQL (Debian's), for metastores: " + Postgres, Up: postgresUp, Down: postgresDown})
}

// postgresProgram is a program of the server: Debian keeps them off the PATH.
func postgresProgram(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%s is not there (Debian: apt-get install postgresql)", name)
	}
	return found[len(found)-1], nil
}

// postgresDir is where the data lie. The server does not run as root, and the
// user it runs as instead cannot walk into root's home.
func postgresDir(h *Home) (string, error) {
	if os.Getuid() != 0 {
		return h.Data("postgres")
	}
	dir := filepath.Join(os.TempDir(), "hivesink-postgres-15432")
	return dir, nil
}

// asPostgres is a command line run as the server's user.
func asPostgres(argv ...string) []string {
	if os.Getuid() != 0 {
		return argv
	}
	return append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"}, argv...)
}

func postgresUp(h *Home) error {
	if h.Running("postgres") {
		return h.Start(Daemon{Name: "postgres"})
	}
	dir, err := postgresDir(h)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); errors.Is(err, os.ErrNotExist) {
		if err := initPostgres(dir, data); err != nil {
			return err
		}
	}
	server, err := postgresProgram("postgres")
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(Postgres)
	argv := asPostgres(server, "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off", "-c", "shared_buffers=64MB", "-c", "max_connections=60")
	if err := h.Start(Daemon{Name: "postgres", Argv: argv, Dir: "/", Ports: []int{15432}}); err != nil {
		return err
	}
	return Until(patience, func() error { return psql("postgres", "select 1") })
}

func initPostgres(dir, data string) error {
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(postgresPassword+"\n"), 0o644); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if _, err := user.Lookup("postgres"); err != nil {
			return fmt.Errorf("%w (Debian: apt-get install postgresql)", err)
		}
		if err := Run("chown", "-R", "postgres:", dir); err != nil {
			return err
		}
	}
	return RunIn("/", nil, asPostgres(initdb, "-D", data, "-U", postgresUser, "--pwfile="+password, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "-N")...)
}

func postgresDown(h *Home) error {
	dir, err := postgresDir(h)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func psql(database, statement string) error {
	host, port, _ := net.SplitHostPort(Postgres)
	return RunIn("/", []string{"PGPASSWORD=" + postgresPassword}, "psql", "-h", host, "-p", port, "-U", postgresUser, "-v", "ON_ERROR_STOP=1", "-qAt", "-d", database, "-c", statement)
}

// createDatabase makes an empty database.
func (h *Home) createDatabase(name string) error {
	if err := psql("postgres", "drop database if exists "+name); err != nil {
		return err
	}
	if err := psql("postgres", "create database "+name); err != nil && !strings.Contains(err.Error(), "already exists") {
		return err
	}
	return nil
}
