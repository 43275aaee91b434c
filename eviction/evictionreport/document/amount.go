package document

import "github.com/weir-metrics/weir/internal/humanize"

// Format returns an amount in the unit, for people: "94.2Mi", "1250m", "37", "12.5%".
func (u Unit) Format(v float64) string {
	switch u {
	case Bytes:
		return humanize.Bytes(v)
	case Cores:
		return humanize.Cores(v * 1e9)
	case Percent:
		return humanize.Percent(v / 100)
	}
	return humanize.Decimal(v, 0)
}

// FormatWithNoun returns the result of Format, followed by the unit's noun if the amount is a
// count: "37 inodes".
func (u Unit) FormatWithNoun(v float64) string {
	switch u {
	case Inodes, Processes:
		return u.Format(v) + " " + string(u)
	}
	return u.Format(v)
}
