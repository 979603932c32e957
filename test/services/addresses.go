package services

import (
	"os"
	"strings"
)

// Address is where a test finds a server: an environment variable, so that
// servers started elsewhere (docker-compose.yml) serve too, else where this
// package starts it.
func Address(variable, own string) string {
	if a := os.Getenv(variable); a != "" {
		return a
	}
	return own
}

// Addresses is a list of them, separated by commas.
func Addresses(variable string, own ...string) []string {
	return strings.Split(Address(variable, strings.Join(own, ",")), ",")
}
