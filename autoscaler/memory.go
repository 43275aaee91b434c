package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Memory is what a decision passes to the next one: recommendations for the stabilization windows,
// and changes for the periods of policies. It is a value: Decide returns a new one and does not
// change the old one. With the zero Memory the first decision uses the current count as its first
// recommendation.
//
// Each decision adds at most one entry, and overwrites an entry that is older than every window or
// period. The memory therefore has about as many entries as there are decisions in the longest
// window.
type Memory struct {
	Recommendations []ReplicaRecommendation
	Ups, Downs      []ReplicaChange
}

// ReplicaRecommendation is the count that the metrics required at a time.
type ReplicaRecommendation struct {
	Replicas int32
	At       time.Time
}

// ReplicaChange is a change of the count that was made.
type ReplicaChange struct {
	Replicas int32 // positive in both directions
	At       time.Time
	Outdated bool // it was older than every policy's period at the last check
}

// WithChange returns the memory after a change of the count at a time. Without a behavior no policy
// reads the changes, so the memory stays the same.
func (m Memory) WithChange(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, at time.Time) Memory {
	if behavior == nil {
		return m
	}
	if to > from {
		m.Ups = appendChange(m.Ups, scaleUpRules(behavior), ReplicaChange{Replicas: to - from, At: at})
	} else {
		m.Downs = appendChange(m.Downs, scaleDownRules(behavior), ReplicaChange{Replicas: from - to, At: at})
	}
	return m
}

// appendChange returns a copy of the changes with one more. The new change overwrites the last
// outdated one, even if a longer period could include that one later.
func appendChange(old []ReplicaChange, rules *autoscalingv2.HPAScalingRules, c ReplicaChange) []ReplicaChange {
	var longest int32
	for i := range rules.Policies {
		longest = max(longest, rules.Policies[i].PeriodSeconds)
	}
	cutoff := c.At.Add(-seconds(longest))
	changes := make([]ReplicaChange, len(old), len(old)+1)
	copy(changes, old)
	position := -1
	for i := range changes {
		if changes[i].At.Before(cutoff) {
			changes[i].Outdated = true
		}
		if changes[i].Outdated {
			position = i
		}
	}
	if position < 0 {
		return append(changes, c)
	}
	changes[position] = c
	return changes
}

// withFirstRecommendation returns the memory with the current count as its first recommendation, if
// it has none. A controller that has just started therefore does not scale down before it has
// observed a whole window.
func (m Memory) withFirstRecommendation(current int32, now time.Time) Memory {
	if len(m.Recommendations) == 0 {
		m.Recommendations = []ReplicaRecommendation{{current, now}}
	}
	return m
}

// withRecommendation returns the memory with one more recommendation. The recommendation overwrites
// the one at index position, unless position is negative.
func (m Memory) withRecommendation(position int, r ReplicaRecommendation) Memory {
	n := len(m.Recommendations)
	if position < 0 {
		position, n = n, n+1
	}
	list := make([]ReplicaRecommendation, n)
	copy(list, m.Recommendations)
	list[position] = r
	m.Recommendations = list
	return m
}

// replicasChangedWithin adds up the changes of a period. A change exactly as old as the period
// does not count.
func replicasChangedWithin(changes []ReplicaChange, period time.Duration, now time.Time) int32 {
	cutoff := now.Add(-period)
	var n int32
	for i := range changes {
		if changes[i].At.After(cutoff) {
			n += changes[i].Replicas
		}
	}
	return n
}
