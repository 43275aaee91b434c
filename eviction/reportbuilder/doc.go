// Package reportbuilder makes the report on evictions of a node from the rounds of its guard. It decides
// nothing: the figures and the ranking come from package eviction for the last round.
//
// Files: report.go has New and the summary; signals.go has the signals, thresholds and conditions;
// ranking.go has the pods in the order of eviction; actions.go has the recent actions and the watches.
package reportbuilder
