// Package evictionreport tells how a node stands with evictions, to people and to machines: each
// signal and how far it is from each threshold, who would go next for it and why, what was
// done lately, what wakes the guard. It decides nothing: package eviction does, and who would go is
// its own ranking of what the last round read.
package evictionreport
