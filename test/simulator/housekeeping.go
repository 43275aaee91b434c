package simulator

// A kubelet reads a cgroup every 10 to 15 s. Here the nth reading is at offset
// + n × 12.5 s + a jitter below 2.5 s. So two readings are between 10 and 15 s
// apart, and the last reading before any moment can be computed without a
// history.
const (
	housekeepingPeriod = 12_500_000_000
	housekeepingJitter = 2_500_000_000
)

// housekeeping returns the last time, not after now, at which the cgroup of
// that key was read.
func housekeeping(k key, now int64) int64 {
	offset := k.between("housekeeping", 0, housekeepingPeriod)
	n := (now - offset) / housekeepingPeriod
	at := func(n int64) int64 {
		return offset + n*housekeepingPeriod + k.num(n).between("jitter", 0, housekeepingJitter)
	}
	if t := at(n); t <= now {
		return t
	}
	return at(n - 1)
}

// firstReading returns the time from a container's start to its first reading.
// No endpoint reports the container before that.
func firstReading(k key) int64 { return k.between("first reading", second/10, 6*second/10) }
