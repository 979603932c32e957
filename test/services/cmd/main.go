// Command cmd starts and stops the servers of the integration tests; see
// package services.
package main

import (
	"fmt"
	"os"

	"github.com/hivesink/hivesink/test/services"
)

const usage = `usage: go run ./test/services/cmd COMMAND [NAME...]

  up [SERVICE...]      start services (the default set without names), wait until they answer
  down [SERVICE...]    stop them (all without names), remove their data
  status               what there is and what runs
  classpath POM        the class path of a file below poms/, such as spark-hive3
  kill|stop|pause|resume|start DAEMON...
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := command(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command(name string, args []string) error {
	h, err := services.DefaultHome()
	if err != nil {
		return err
	}
	each := map[string]func(string) error{"kill": h.Kill, "stop": h.Stop, "pause": h.Pause, "resume": h.Resume, "start": h.Again}
	switch {
	case name == "up":
		return h.Up(func(s string) { fmt.Fprintln(os.Stderr, "up", s) }, args...)
	case name == "down":
		return h.Down(args...)
	case name == "classpath" && len(args) == 1:
		path, err := h.ClassPath(services.Source("poms", args[0], "pom.xml"))
		if err == nil {
			fmt.Println(path)
		}
		return err
	case name == "status":
		return status(h)
	case each[name] != nil:
		for _, daemon := range args {
			if err := each[name](daemon); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("no command %q\n%s", name, usage)
}

func status(h *services.Home) error {
	fmt.Println("services:")
	for _, s := range services.All() {
		fmt.Printf("  %-12s %s\n", s.Name, s.About)
	}
	daemons, err := h.Daemons()
	if err != nil {
		return err
	}
	fmt.Println("daemons:")
	for _, d := range daemons {
		state := "ended"
		if h.Running(d) {
			state = "runs"
		}
		fmt.Printf("  %-20s %s\n", d, state)
	}
	return nil
}
