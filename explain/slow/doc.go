// Package slow answers what a pod waited for in the last minutes, and who is the cause: its own limits,
// its own use, its neighbours on the node, or nobody. It is pure: readings go in, an attribution comes out.
//
// Files:
//
//	decide.go  Decide: how the stalls of a pod are divided among their causes
//	series.go  readings over time
//	text.go    the answer in sentences, with evidence and advice
//	collect.go the readings of a pod, its node and its neighbours, from weir's memory
//	report.go  one pod, or those of a namespace that lost the most time
//	types.go   the answer as JSON
//
// README.md has the arithmetic, and what it cannot show.
package slow
