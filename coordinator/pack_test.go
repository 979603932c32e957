package coordinator

import (
	"fmt"
	"strings"
	"testing"
)

// C4: the reference sink's table.
func TestPackTable(t *testing.T) {
	for _, c := range []struct {
		weights []int64
		target  int64
		want    string
	}{
		{[]int64{1, 2, 3, 4, 5}, 3, "[1 2][3][4][5]"},
		{[]int64{1, 2, 3, 4, 5}, 5, "[1 2][3][4][5]"},
		{[]int64{1, 2, 3, 4, 5}, 6, "[1 2 3][4][5]"},
		{[]int64{1, 2, 3, 4, 5}, 8, "[1 2 3][4][5]"},
		{[]int64{1, 2, 3, 4, 5}, 9, "[1 2 3][4 5]"},
		{[]int64{1, 2, 3, 4, 5}, 10, "[1 2 3 4][5]"},
		{[]int64{1, 2, 3, 4, 5}, 14, "[1 2 3 4][5]"},
		{[]int64{1, 2, 3, 4, 5}, 15, "[1 2 3 4 5]"},
		{[]int64{3, 2, 5, 1}, 9, "[3 2 1][5]"}, // the coordinator's own example: f0 f1 f4, then f3
		{[]int64{2, 5, 4}, 9, "[2 5][4]"},
		{nil, 9, ""},
		{[]int64{20}, 9, "[20]"},
		{[]int64{20, 0, 1}, 9, "[20][0 1]"},          // nothing joins an oversized item, not even an empty one
		{[]int64{9, 0, 1}, 9, "[9 0][1]"},            // a full bin still takes an empty item
		{[]int64{1, 1, 1}, 0, "[1][1][1]"},           // no target: one each
		{[]int64{6, 6, 3, 3, 1}, 9, "[6 3][6 3][1]"}, // first-fit, not next-fit
	} {
		if got := show(c.weights, Pack(c.weights, c.target)); got != c.want {
			t.Errorf("Pack(%v, %d) = %s, want %s", c.weights, c.target, got, c.want)
		}
	}
}

// Ten bins may be open; the eleventh closes the oldest, which then takes
// nothing more although it has room.
func TestPackClosesOldestOfElevenBins(t *testing.T) {
	tens := []int64{8, 9, 9, 9, 9, 9, 9, 9, 9, 9} // ten bins
	if got, want := show(append(tens[:10:10], 2), Pack(append(tens[:10:10], 2), 10)),
		"[8 2][9][9][9][9][9][9][9][9][9]"; got != want {
		t.Errorf("ten open bins: %s, want %s", got, want)
	}
	w := append(tens[:10:10], 10, 2)
	if got, want := show(w, Pack(w, 10)), "[8][9][9][9][9][9][9][9][9][9][10][2]"; got != want {
		t.Errorf("eleventh bin: %s, want %s", got, want)
	}
	// Closed bins come first, in the order they were closed.
	w = append(tens[:10:10], 10, 1)
	if got, want := show(w, Pack(w, 10)), "[8][9 1][9][9][9][9][9][9][9][9][10]"; got != want {
		t.Errorf("after the eleventh bin: %s, want %s", got, want)
	}
}

func show(weights []int64, bins [][]int) string {
	var b strings.Builder
	for _, bin := range bins {
		items := make([]int64, len(bin))
		for i, n := range bin {
			items[i] = weights[n]
		}
		fmt.Fprint(&b, items)
	}
	return b.String()
}
