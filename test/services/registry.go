package services

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// registryPort is where the schema registry listens.
const registryPort = 18081

func init() {
	register(Service{Name: "registry", About: "Apicurio Registry 3.3.3, in memory, " + RegistryURL(), Default: true, Up: upRegistry})
}

// RegistryURL is the schema registry's, with the API of Confluent's.
func RegistryURL() string {
	return Address("HIVESINK_REGISTRY", fmt.Sprintf("http://localhost:%d/apis/ccompat/v7", registryPort))
}

func upRegistry(h *Home) error {
	if h.Running("registry") {
		return nil
	}
	java, err := newJava(21)
	if err != nil {
		return err
	}
	dir, err := h.Unpacked("io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all")
	if err != nil {
		return err
	}
	jars, err := filepath.Glob(filepath.Join(dir, "*-runner.jar"))
	if err != nil || len(jars) == 0 {
		jars = []string{filepath.Join(dir, "quarkus-run.jar")}
	}
	argv := []string{java, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1",
		"-Dquarkus.http.port=" + strconv.Itoa(registryPort), "-jar", jars[0]}
	if err := h.Start(Daemon{Name: "registry", Argv: argv, Dir: dir, Ports: []int{registryPort}}); err != nil {
		return err
	}
	return Until(patience, func() error {
		resp, err := (&http.Client{Timeout: 5 * time.Second}).Get(RegistryURL() + "/subjects")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the registry answers %s", resp.Status)
		}
		return nil
	})
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// newJava finds a JVM of at least a version: JAVA_HOME, the PATH, and beside
// what the PATH has, where distributions put several.
func newJava(least int) (string, error) {
	var candidates []string
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "java"))
	}
	if own, err := exec.LookPath("java"); err == nil {
		candidates = append(candidates, own)
		if real, err := filepath.EvalSymlinks(own); err == nil {
			beside, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(real))), "*", "bin", "java"))
			slices.Sort(beside)
			candidates = append(candidates, beside...)
		}
	}
	for _, c := range candidates {
		out, err := exec.Command(c, "-version").CombinedOutput()
		if err != nil {
			continue
		}
		if m := javaVersion.FindSubmatch(out); m != nil {
			if v, _ := strconv.Atoi(string(m[1])); v >= least {
				return c, nil
			}
		}
	}
	return "", fmt.Errorf("no Java %d or newer: set JAVA_HOME to one (Temurin 21 or 25, openjdk-21-jre-headless)", least)
}
