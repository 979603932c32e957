package hivetype

import "strings"

// String prints the type as Hive does.
func (t *Type) String() string { return strings.ToLower("unimplemented") }
