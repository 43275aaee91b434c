// Package evictionreport makes the report on evictions of a node, for people and for programs. The
// report has each signal and its distance from each threshold, the pod that would be evicted next
// and why, the recent actions, and what triggers a read. The package decides nothing: the figures
// and the ranking come from package eviction for the last round.
//
// Files: types.go has the report as the API serves it; report.go has New and the summary; signals.go
// has the signals, thresholds and conditions; ranking.go has the pods in the order of eviction;
// actions.go has the recent actions and the watches; text.go writes a report for people.
package evictionreport
