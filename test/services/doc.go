// Package services starts the servers that the integration tests talk to, on
// loopback, as ordinary processes: no container engine is needed. Programs come
// from public packages at pinned versions (Maven artifacts through mvn, Go
// modules, Debian and Python packages), each tool configured as its user has it.
//
//	go run ./test/services/cmd up [NAME...]     start, wait until they answer
//	go run ./test/services/cmd status
//	go run ./test/services/cmd kill DAEMON      also pause, resume, stop, start
//	go run ./test/services/cmd down [NAME...]   stop, remove their data
//
// A service is a set of daemons, one file each here. Everything lies under one
// directory, HIVESINK_SERVICES (~/.cache/hivesink/services): downloads are
// kept, run/, log/ and data/ go with `down`. Ports are fixed, and below 32768,
// so that no outgoing connection takes them.
//
// Tests see addresses only (addresses.go); an environment variable replaces
// each, so that the same tests run against the servers of docker-compose.yml.
// What only processes of this package can do (kill, pause) is in daemon.go.
//
// Invariants:
//
//   - V1: a process is signalled only when it is the very one that was started:
//     pid and start time agree with what was noted.
//   - V2: up is idempotent; what runs already is left alone.
//   - V3: a daemon that dies while it is waited for ends the wait at once, with
//     the end of its log.
package services
