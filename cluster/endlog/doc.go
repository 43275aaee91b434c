// Package endlog keeps, for an hour, the runs of containers that ended and the pods that went away: what
// the API server last reported about them, and what they used in the minutes before. Afterwards the API
// server knows only the last run of a container, and nothing of a pod that is gone.
//
// It records facts. Package explain/death decides what they mean.
//
//	end.go     End, and what was used before it
//	detect.go  Ends: which ends a change of a pod shows
//	kill.go    Kill: what agents read of the kernel, and which ends it can have caused
//	match.go   which of several kills caused which end
//	log.go     Log: what is kept, and what is read
package endlog
