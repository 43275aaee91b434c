package resize

import (
	"fmt"
	"strconv"
	"time"
)

// Tell returns an amount for people: "250m", "64Mi", "95.4Mi".
func Tell(r Resource, value int64) string {
	if r == CPU {
		return Quantity(r, value).String()
	}
	magnitude := value
	if magnitude < 0 {
		magnitude = -magnitude
	}
	unit, name := int64(1), ""
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 10, "Ki"}, {1 << 20, "Mi"}, {1 << 30, "Gi"}, {1 << 40, "Ti"}} {
		// 1536Mi is read more easily than 1.5Gi, and is what manifests say.
		if magnitude >= u.size && (u.size <= mebibyte || magnitude >= 10*u.size || value%u.size == 0) {
			unit, name = u.size, u.name
		}
	}
	if value%unit == 0 {
		return strconv.FormatInt(value/unit, 10) + name
	}
	return strconv.FormatFloat(float64(value)/float64(unit), 'f', 1, 64) + name
}

// tell says what was used: "95% of 60 readings over 14m45s are at most 62m".
func (f *Figure) tell(r Resource) string {
	amount := Tell(r, value(r, &f.Value))
	if f.Percentile == 100 {
		return fmt.Sprintf("the highest of %d readings over %v is %s", f.Samples, length(f.From, f.To), amount)
	}
	return fmt.Sprintf("%.4g%% of %d readings over %v are at most %s", f.Percentile, f.Samples, length(f.From, f.To), amount)
}

// length returns how long a history is, as people say it.
func length(from, to time.Time) time.Duration { return to.Sub(from).Round(time.Second) }
