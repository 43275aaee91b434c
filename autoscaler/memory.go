package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Memory is what a decision leaves for the next: recommendations, for the
// stabilization windows, and changes made, for the policies' periods. It is a
// value: Decide returns a new one and changes nothing in the old. The zero Memory
// remembers nothing; the first decision then remembers the current count.
//
// After the first it grows by at most one entry a decision, and one that has grown older than every
// window or period is overwritten instead, so that it holds about as many as there
// are decisions in the longest window.
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

// Scaled returns the memory after a change from one count to another, made at a
// time, for the policies of behavior. Without a behavior nothing will ask for it, and
// nothing is remembered.
func (m Memory) Scaled(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, at time.Time) Memory {
	if behavior == nil {
		return m
	}
	if to > from {
		m.Ups = changed(m.Ups, upRules(behavior), Change{Replicas: to - from, At: at})
	} else {
		m.Downs = changed(m.Downs, downRules(behavior), Change{Replicas: from - to, At: at})
	}
	return m
}

// changed returns a copy of the changes with one more. It takes the place of the
// last outdated one: a change once found outdated may be overwritten for good, even
// if a longer period reaches back to it later.
func changed(old []Change, rules *autoscalingv2.HPAScalingRules, c Change) []Change {
	var longest int32
	for i := range rules.Policies {
		longest = max(longest, rules.Policies[i].PeriodSeconds)
	}
	cutoff := c.At.Add(-seconds(longest))
	changes := make([]Change, len(old), len(old)+1)
	copy(changes, old)
	place := -1
	for i := range changes {
		if changes[i].At.Before(cutoff) {
			changes[i].Outdated = true
		}
		if changes[i].Outdated {
			place = i
		}
	}
	if place < 0 {
		return append(changes, c)
	}
	changes[place] = c
	return changes
}

// seeded returns the memory with the current count as its first recommendation, if
// it has none: whoever just started must not undo what it knows no reason for.
func (m Memory) seeded(current int32, now time.Time) Memory {
	if len(m.Recommendations) == 0 {
		m.Recommendations = []Recommendation{{current, now}}
	}
	return m
}

// recommended returns the memory with one more recommendation, in place of the one
// at an index unless that is negative.
func (m Memory) recommended(place int, r Recommendation) Memory {
	n := len(m.Recommendations)
	if place < 0 {
		place, n = n, n+1
	}
	list := make([]Recommendation, n)
	copy(list, m.Recommendations)
	list[place] = r
	m.Recommendations = list
	return m
}

// within is how many replicas the changes of a period add up to. One exactly as old
// as the period no longer counts.
func within(changes []Change, period time.Duration, now time.Time) int32 {
	cutoff := now.Add(-period)
	var n int32
	for i := range changes {
		if changes[i].At.After(cutoff) {
			n += changes[i].Replicas
		}
	}
	return n
}
