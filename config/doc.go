// Package config is the one tree of options of hivesink: it reads YAML (JSON
// is a subset), fills in defaults, applies --set flags, and says everything
// that is wrong at once, each with its place and a remedy. It touches nothing
// but the file it reads.
//
// A program gets a Config from Load or Parse, or starts from Default and fills
// the struct. A struct made without Default is filled on Validate: an option
// left zero takes its default.
//
// Invariants:
//
//	G1  Every problem is reported, not only the first; one wrong value is
//	    reported once, and nothing that merely follows from it.
//	G2  A problem names its place: file, line and column, or the --set flag it
//	    came from, or for a filled struct the path of the option.
//	G3  A key that is not an option is a problem, never ignored.
//	G4  Marshal prints a config that Parse reads back as the same config.
//	G5  The reference (Docs, JSONSchema) is generated from the structs and
//	    their comments; it cannot name an option that does not exist, nor leave
//	    one out.
//	G6  What is valid does not depend on the machine: no look at the file
//	    system or the network; time zones are part of the program.
//	G7  A Config never holds a secret, only where it is found; a literal is
//	    refused, and no problem repeats it.
package config
