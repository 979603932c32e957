package commit

import "time"

// Pauses between attempts of a policy.
const (
	firstPause = time.Second
	// MaxPause is the longest pause. A policy is tried for ever.
	MaxPause = time.Minute
)

// Backoff is the pause after so many failed attempts: 1 s after the first,
// twice as long after each one more, at most MaxPause.
func Backoff(attempts int) time.Duration {
	pause := firstPause
	for range attempts - 1 {
		if pause *= 2; pause >= MaxPause {
			return MaxPause
		}
	}
	return pause
}
