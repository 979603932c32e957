package parquetfile

import (
	"bytes"
	"slices"
)

// The orders that a footer may say the minima and maxima of a column follow.
const (
	orderOfType = 1 // TYPE_ORDER
	orderIEEE   = 2 // of floats
	orderInt96  = 3 // of old timestamps
)

// columnOrders are those of a footer's list, nil when one is not known here.
func columnOrders(raw []byte) []int16 {
	if raw == nil {
		return nil
	}
	w := walker{b: raw}
	elem, n := w.list()
	out := make([]int16, 0, min(n, maxColumns))
	for i := 0; i < n && !w.bad; i++ {
		kind := int16(0)
		for id, typ := range w.fields {
			w.skip(typ)
			kind = id
		}
		if kind < orderOfType || kind > orderInt96 {
			return nil
		}
		out = append(out, kind)
	}
	if w.bad || elem != thriftStruct {
		return nil
	}
	return out
}

func appendOrders(orders []int16) []byte {
	out := appendListHeader(nil, thriftStruct, len(orders))
	for _, kind := range orders {
		union := thriftStructOf{dst: out}
		union.raw(kind, thriftStruct, []byte{0})
		out = union.end()
	}
	return out
}

// commonOrders are orders that hold for the minima and maxima of two files. What
// holds by one of the special orders holds by that of the type, too: it says less
// of zeros and of NaN, and nothing of old timestamps.
func commonOrders(a, b []byte) []byte {
	if bytes.Equal(a, b) {
		return a
	}
	x, y := columnOrders(a), columnOrders(b)
	if x == nil || len(x) != len(y) {
		return nil // what minimum means is not known of all of them
	}
	for i := range x {
		if x[i] != y[i] {
			x[i] = orderOfType
		}
	}
	return appendOrders(x)
}

// ordersWritten are those of a file in which there are minima and maxima that
// are written here, by the orders of types. Whoever goes by IEEE's counts NaN.
func ordersWritten(raw []byte) []byte {
	orders := columnOrders(raw)
	if orders == nil {
		return nil
	}
	if !slices.Contains(orders, orderIEEE) {
		return raw
	}
	for i := range orders {
		if orders[i] == orderIEEE {
			orders[i] = orderOfType
		}
	}
	return appendOrders(orders)
}
