// Package rules is the file that says which external metrics there are: its
// format (docs/external-metrics.md describes it), its mistakes, and how a rule
// becomes the query for one caller.
//
// A rule's query is PromQL as for the whole cluster. For a caller, label matchers
// are added to the parsed query, which is then written out again: no text of the
// caller's is ever pasted into a query.
//
// Parse finds all mistakes of a file at once, each with its line and column and
// what to do about it.
package rules
