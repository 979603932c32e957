package pipeline

// ailing is what is wrong beside the chain: the index is behind the log, the log
// is not tidied up. No fact depends on either and nothing stops, but starts take
// longer and the log grows, so somebody should know; once each time it begins.
type ailing struct{ index, upkeep bool }

// tellAiling makes events of what has gone wrong since the last look.
func (c *chain) tellAiling() {
	c.ail("index-behind", &c.ailing.index, c.log.IndexErr())
	c.ail("upkeep-failed", &c.ailing.upkeep, c.log.UpkeepErr())
}

func (c *chain) ail(kind string, told *bool, err error) {
	if err != nil && !*told {
		c.emit(Event{Kind: kind, Err: err})
	}
	*told = err != nil
}
