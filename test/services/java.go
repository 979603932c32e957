package services

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Java is the command line of a small JVM: 17 or newer, JAVA_HOME or the one on
// the PATH. The main class and its arguments are appended.
func Java(classPath, heap string, options ...string) ([]string, error) {
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	if _, err := exec.LookPath(java); err != nil {
		return nil, fmt.Errorf("%w (Debian: apt-get install openjdk-17-jre-headless)", err)
	}
	argv := []string{java, "-Xmx" + heap, "-Xms32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true"}
	// Hadoop's and Hive's own start scripts open these on Java 17.
	for _, p := range strings.Fields("java.lang java.lang.reflect java.io java.net java.nio java.util java.util.concurrent java.util.concurrent.atomic sun.nio.ch java.math java.time") {
		argv = append(argv, "--add-opens=java.base/"+p+"=ALL-UNNAMED")
	}
	argv = append(argv, "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED", "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED")
	return append(append(argv, options...), "-cp", classPath), nil
}

// Source is a path below this package's directory: pom files, configuration.
func Source(elem ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file)}, elem...)...)
}
