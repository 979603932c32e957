// Package lint holds the rules of the tree as tests: which package may import
// which, where a foreign library may be used, and what the pure cores must not
// touch. `go test ./internal/lint` runs them; each failure names the rule and
// what to do instead.
package lint
