package hivetype

// Kind is the outermost constructor of a Hive type.
type Kind uint8

// The Hive types hivesink writes.
const (
	Invalid Kind = iota
	Boolean
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal // Precision, Scale
	String
	Varchar // Length, in code points
	Char    // Length, in code points
	Binary
	Date
	Timestamp
	Array  // Elem
	Map    // Key, Elem
	Struct // Fields
)

// Type is one Hive type. Only the fields its Kind names above are set.
type Type struct {
	Kind      Kind
	Precision int
	Scale     int
	Length    int
	Key       *Type
	Elem      *Type
	Fields    []Field
}

// Field is a column of a table or a field of a struct. Name is lower case, as
// Hive keeps it.
type Field struct {
	Name    string
	Type    *Type
	NotNull bool
}
