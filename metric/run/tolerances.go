package run

import "time"

// The error model: by how much what nodes and the API server report may be off. README.md has the
// reason for each number. steadyPart in processors/rate is a bound for another question.
const (
	// Cut is by how much two times of one moment differ if one of them is cut to the second.
	Cut = time.Second
	// Tick is by how much starts that one endpoint reports may move, if its resolution is finer.
	Tick = 50 * time.Millisecond
	// Jitter is by how much a reported start may be off, or a container be created before its process
	// starts. Starts that are further apart are of two instances.
	Jitter = 5 * time.Second
	// Far is by how much the API server's start of a run and a reported one may differ where nothing
	// else shows that they are of two runs: a runtime may take long between the two.
	Far = time.Minute
	// OldReading is how old a reading may be when it is first reported.
	OldReading = 35 * time.Second
	// OldestReading is how old a reading may be where a step of the node's clock hides its age.
	OldestReading = 2 * time.Minute
	// CounterLag is by how much the time of a counter may be off its value.
	CounterLag = 250 * time.Millisecond
	// UnknownDistance is how far a start that is unknown counts as from any other one.
	UnknownDistance = 20 * time.Second
	// leastRecordLag is how late the API server may be in naming a run.
	leastRecordLag = time.Minute
)

// RecordLag returns how late what the API server reports may be, for a source that is read at this
// interval.
func RecordLag(interval time.Duration) time.Duration { return max(interval, leastRecordLag) }

// Near returns by how much a start may be off that an endpoint of this resolution reports, if it is
// compared with another one of that endpoint.
func Near(resolution time.Duration) time.Duration { return max(resolution, Tick) }

// IsCut reports whether a time in nanoseconds is cut to a whole second, as the times of the API
// server are.
func IsCut(at int64) bool { return at%int64(time.Second) == 0 }
