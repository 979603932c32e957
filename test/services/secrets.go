package services

import (
	"fmt"
	"strings"
)

// Secrets are what the tests give to the program to log in with, and must not
// see again in anything that it writes.
var Secrets = []string{KafkaPassword, HMSSecret, S3SecretKey}

// Leaks is an error when a text has one of the Secrets in it.
func Leaks(where, text string) error {
	for _, s := range Secrets {
		if at := strings.Index(text, s); at >= 0 {
			return fmt.Errorf("%s gives a secret away: …%s***", where, text[max(0, at-80):at])
		}
	}
	return nil
}
