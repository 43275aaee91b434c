package autoscaler

import "time"

// Memory is what a decision leaves for the next: recommendations, for the
// stabilization windows, and changes made, for the policies' periods. It is a
// value: Decide returns a new one and changes nothing in the old. The zero Memory
// remembers nothing; the first decision then remembers the current count.
type Memory struct {
	Recommendations []Recommendation
	Ups, Downs      []Change
}

// Recommendation is the count that the metrics asked for at a time.
type Recommendation struct {
	Replicas int32
	At       time.Time
}

// Change is a change of the count that was made: of so many replicas, up or down.
type Change struct {
	Replicas int32 // positive in both directions
	At       time.Time
	Outdated bool // older than every policy's period when last looked at
}
