// Package evictionreport makes the report on evictions of a node, for people and for programs: each
// signal and its distance from each threshold, which pod would be evicted next and why, the recent
// actions, and what triggers a reading. It decides nothing. The figures and the ranking are those of
// package eviction for the last round.
//
// Files: report.go has New and the summary, signals.go the signals, thresholds and conditions,
// ranking.go the pods in the order of eviction, actions.go the recent actions and the watches.
package evictionreport
