package resize

import (
	"fmt"
	"slices"
	"time"
)

// Options configures how requests are computed. Start with Defaults.
type Options struct {
	CPU, Memory Aim
	// Tool computes requests as another tool does, in the place of the percentile and the headroom of
	// CPU and Memory. If it is nil, those are used. The floors are for both.
	Tool Tool
	// Resources are the resources that may change.
	Resources []Resource
	// MinHistory is the shortest time for which a container must have been measured.
	MinHistory time.Duration
	// Up also lets requests grow, up to the limit.
	Up bool
	// Limits lets the limits of Guaranteed pods shrink together with their requests. Without it these
	// pods stay as they are, because their class requires equal requests and limits.
	Limits bool
}

// Aim configures how the request of one resource is computed.
type Aim struct {
	// Percentile is the share of readings, in percent, that the request covers; 100 covers all.
	Percentile float64
	// Headroom is the share that is added to that value: 0.15 for 15%.
	Headroom float64
	// Floor is the smallest proposal, in millicores or bytes.
	Floor int64
}

// Tool is another tool that recommends requests.
type Tool interface {
	// Estimate returns the request of a container from its usage in one or more pods. It is not set if
	// that is too little.
	Estimate(r Resource, pods []PodUsage) Amount
}

// mebibyte is the step of memory proposals. CPU proposals have a step of one millicore.
const mebibyte = 1 << 20

// Defaults returns the default options: for CPU the 95th percentile plus 15%, at least 10m; for
// memory the highest working set plus 20%, at least 16Mi; ten minutes of history; no growth.
func Defaults() Options {
	return Options{
		CPU:       Aim{Percentile: 95, Headroom: 0.15, Floor: 10},
		Memory:    Aim{Percentile: 100, Headroom: 0.20, Floor: 16 * mebibyte},
		Resources: Resources(), MinHistory: 10 * time.Minute,
	}
}

// Validate returns the first mistake in o.
func (o *Options) Validate() error {
	for _, r := range Resources() {
		a := o.aim(r)
		switch {
		case !(a.Percentile > 0 && a.Percentile <= 100):
			return fmt.Errorf("the percentile of %s is %v: it must be above 0 and at most 100", r, a.Percentile)
		case !(a.Headroom >= 0 && a.Headroom <= 10):
			return fmt.Errorf("the headroom of %s is %v%%: it must be from 0%% to 1000%%", r, a.Headroom*100)
		case a.Floor < 1 || a.Floor > maxValue:
			return fmt.Errorf("the floor of %s is %v: it must be above 0", r, Quantity(r, a.Floor))
		}
	}
	for _, r := range o.Resources {
		if !slices.Contains(Resources(), r) {
			return fmt.Errorf("%q cannot be resized in place: only cpu and memory can", r)
		}
	}
	if o.MinHistory < 0 {
		return fmt.Errorf("a history cannot be as short as %v", o.MinHistory)
	}
	return nil
}

func (o *Options) aim(r Resource) *Aim {
	if r == Memory {
		return &o.Memory
	}
	return &o.CPU
}
