package main

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// random is a linear congruential generator: the same rows on every machine.
type random uint64

func (x *random) next(m uint64) int64 {
	*x = *x*6364136223846793005 + 1442695040888963407
	return int64((uint64(*x) >> 33) % m)
}

// column is a column of a shape: its declaration and its values, of which
// nulls percent are null.
type column struct {
	decl  string
	nulls uint64
	value func(x *random, row int, to array.Builder)
}

// shape is a kind of row. Its first column, id, is the number of the row: the
// order of the rows can be read from it.
type shape struct {
	columns     []column
	sum, filter string // columns of the readers' queries
}

var shapes = map[string]shape{
	"narrow": {narrow(), "value", "sensor"},
	"clicks": {clicks(), "amount", "user_name"},
	"low":    {low(), "id", "country"},
	"high":   {high(), "score", "key"},
	"wide":   {wide(), "d1", "s2"},
	"nested": {nested(), "id", "country"},
}

// id is the number of the row.
func id() column {
	return column{decl: "id bigint", value: func(_ *random, row int, to array.Builder) {
		to.(*array.Int64Builder).Append(int64(row))
	}}
}

func text(name, format string, distinct uint64) column {
	return column{decl: name + " string", value: func(x *random, _ int, to array.Builder) {
		to.(*array.StringBuilder).Append(fmt.Sprintf(format, x.next(distinct)))
	}}
}

func whole(name string, distinct uint64) column {
	return column{decl: name + " bigint", value: func(x *random, _ int, to array.Builder) {
		to.(*array.Int64Builder).Append(x.next(distinct))
	}}
}

func double(name string, distinct uint64) column {
	return column{decl: name + " double", value: func(x *random, _ int, to array.Builder) {
		to.(*array.Float64Builder).Append(float64(x.next(distinct)) / 100)
	}}
}

func boolean(name string, of uint64) column {
	return column{decl: name + " boolean", value: func(x *random, _ int, to array.Builder) {
		to.(*array.BooleanBuilder).Append(x.next(of) != 0)
	}}
}

func timestamp(name string) column {
	return column{decl: name + " timestamp", value: func(x *random, _ int, to array.Builder) {
		to.(*array.TimestampBuilder).Append(arrow.Timestamp(1767225600000000 + x.next(86400000)*1000))
	}}
}

func date(name string, days uint64) column {
	return column{decl: name + " date", value: func(x *random, _ int, to array.Builder) {
		to.(*array.Date32Builder).Append(arrow.Date32(20454 + x.next(days)))
	}}
}

func sometimes(nulls uint64, c column) column {
	c.nulls = nulls
	return c
}

func narrow() []column {
	return []column{id(), text("sensor", "sensor-%04d", 1000), double("value", 10_000)}
}

// clicks are the records of benchmarks/gen: id, ts and url hardly repeat within
// a file of 5,000.
func clicks() []column {
	return []column{id(), timestamp("ts"), text("user_name", "user-%06d", 100_000), text("country", "C%03d", 200),
		double("amount", 100_000), url(), boolean("ok", 10)}
}

func url() column {
	return column{decl: "url string", value: func(x *random, _ int, to array.Builder) {
		to.(*array.StringBuilder).Append(fmt.Sprintf("/shop/category-%02d/item-%05d", x.next(40), x.next(60_000)))
	}}
}

func low() []column {
	return []column{id(), text("status", "status-%d", 5), text("country", "C%03d", 200), sometimes(10, text("device", "device-model-%02d", 12)),
		whole("level", 10), double("price", 50), date("day", 3), boolean("ok", 10)}
}

// high has no value twice, but for the nulls.
func high() []column {
	key := column{decl: "key string", value: func(x *random, row int, to array.Builder) {
		to.(*array.StringBuilder).Append(fmt.Sprintf("%08x-%07x-%08x-%07x", uint32(row)*2654435761, x.next(1<<28), x.next(1<<32), x.next(1<<28)))
	}}
	token := sometimes(5, column{decl: "token string", value: func(x *random, row int, to array.Builder) {
		to.(*array.StringBuilder).Append(strconv.FormatInt(x.next(1<<31), 36) + "-" + strconv.Itoa(row))
	}})
	return []column{id(), key, token, whole("session", 1<<33), double("score", 1<<33)}
}

// wide is a hundred columns, a third each of numbers, doubles and texts, from
// two values to a million.
func wide() []column {
	cols := []column{id()}
	for i := 1; i < 100; i++ {
		distinct := []uint64{2, 100, 5000, 1_000_000}[i/3%4]
		var c column
		switch i % 3 {
		case 0:
			c = whole(fmt.Sprintf("n%d", i), distinct)
		case 1:
			c = double(fmt.Sprintf("d%d", i), distinct)
		case 2:
			c = text(fmt.Sprintf("s%d", i), "value-%06d", distinct)
		}
		if i%5 == 0 {
			c.nulls = 20
		}
		cols = append(cols, c)
	}
	return cols
}

func nested() []column {
	person := column{decl: "person struct<name:string,address:struct<city:string,zip:int>>", nulls: 5, value: func(x *random, _ int, to array.Builder) {
		p := to.(*array.StructBuilder)
		p.Append(true)
		p.FieldBuilder(0).(*array.StringBuilder).Append(fmt.Sprintf("user-%06d", x.next(100_000)))
		a := p.FieldBuilder(1).(*array.StructBuilder)
		a.Append(true)
		a.FieldBuilder(0).(*array.StringBuilder).Append(fmt.Sprintf("city-%03d", x.next(500)))
		a.FieldBuilder(1).(*array.Int32Builder).Append(int32(x.next(90_000)))
	}}
	tags := column{decl: "tags array<string>", nulls: 10, value: func(x *random, _ int, to array.Builder) {
		l := to.(*array.ListBuilder)
		l.Append(true)
		for range x.next(5) {
			l.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("tag-%02d", x.next(60)))
		}
	}}
	attributes := column{decl: "attributes map<string,string>", nulls: 10, value: func(x *random, row int, to array.Builder) {
		m := to.(*array.MapBuilder)
		m.Append(true)
		for i := range x.next(4) {
			m.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprintf("key-%d", i))
			m.ItemBuilder().(*array.StringBuilder).Append(fmt.Sprintf("value-%04d", x.next(3000)))
		}
	}}
	points := column{decl: "points array<struct<x:double,y:double>>", value: func(x *random, _ int, to array.Builder) {
		l := to.(*array.ListBuilder)
		l.Append(true)
		for range x.next(3) {
			s := l.ValueBuilder().(*array.StructBuilder)
			s.Append(true)
			s.FieldBuilder(0).(*array.Float64Builder).Append(float64(x.next(3600)) / 10)
			s.FieldBuilder(1).(*array.Float64Builder).Append(float64(x.next(1800)) / 10)
		}
	}}
	return []column{id(), text("country", "C%03d", 200), person, tags, attributes, points}
}

// schema is the shape as a table has it.
func (s shape) schema() (*record.Schema, error) {
	fields := make([]hivetype.Field, len(s.columns))
	for i, c := range s.columns {
		f, err := hivetype.ParseColumn(c.decl)
		if err != nil {
			return nil, err
		}
		fields[i] = f
	}
	return record.NewSchema(fields, nil)
}

// batch makes the next rows, from first on.
func (s shape) batch(rs *record.Schema, x *random, first, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	defer b.Release()
	for i, c := range s.columns {
		to := b.Field(i)
		for row := range rows {
			if c.nulls > 0 && uint64(x.next(100)) < c.nulls {
				to.AppendNull()
				continue
			}
			c.value(x, first+row, to)
		}
	}
	return b.NewRecordBatch()
}
