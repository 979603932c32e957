package coordinator

// maxOpenBins is how many bins may wait for a fitting item. It keeps the cost
// linear.
const maxOpenBins = 10

type bin struct {
	weight int64
	items  []int
}

// Pack puts items of the given weights into bins of at most target, first-fit
// in the given order, and returns the items' indices, bin by bin. A bin of
// exactly target is full but still takes items of weight zero; an item over
// target has a bin of its own. When an eleventh bin is opened the oldest one
// is closed; bins come in the order they were closed, then opened.
func Pack(weights []int64, target int64) [][]int {
	var done [][]int
	var open []bin
	for i, w := range weights {
		fit := -1
		for j := range open {
			if open[j].weight+w <= target {
				fit = j
				break
			}
		}
		if fit >= 0 {
			open[fit].weight += w
			open[fit].items = append(open[fit].items, i)
			continue
		}
		open = append(open, bin{w, []int{i}})
		if len(open) > maxOpenBins {
			done = append(done, open[0].items)
			open = open[1:]
		}
	}
	for _, b := range open {
		done = append(done, b.items)
	}
	return done
}
