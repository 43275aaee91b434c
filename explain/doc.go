// Package explain answers why a number is there, is missing or is in doubt: for
// one container, pod or node, and for everything that is missing, grouped by
// cause.
//
// It is pure: a World holds what was measured, what stands against numbers, what
// the API server says and how reading fares, all as of one moment, and every
// answer is a function of it. An answer is data, with its sentences already in
// it, so that a command, a page and an Event say the same.
//
// A Ruling is what became of a pod or node in few words (ruling.go, from the
// verdicts in stand.go and how the node is read in reading.go). A Survey makes one
// for each of many, node by node (survey.go), Rule one for any metric of anything
// (rule.go), and Brief says it in the sentence that all APIs give (brief.go): whoever
// serves numbers asks here why one is missing, and nobody judges for himself. A
// Finding says it in full: teller.go and told.go put it into words, evidence.go lists
// what it rests on, rivals.go who was turned away. report.go and cause.go group what
// is missing; reported.go does on a machine without a cluster.
//
// Answers have readers of one namespace. So only what is said of a node holds the
// error that reading it ended with: errors name addresses.
package explain
