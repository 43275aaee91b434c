// Package rules is the file that defines custom and external metrics by PromQL: its format (docs/external-metrics.md
// describes it), its mistakes, and the query of a rule for one caller.
//
// The query of a rule is PromQL for the whole cluster. For a caller, label matchers are added to
// the parsed query, and the result is printed: no text from the caller is ever pasted into a query.
//
// Parse finds all mistakes of a file at once, each with its line and column and what to do about
// it.
//
// # Files
//
//   - rules.go: the rules; parse.go, yaml.go: the file and its positions; query.go: its PromQL.
//   - overtime.go: functions of what weir measured in a window.
//   - object.go: the objects that a rule has values of; resultlabel.go: which labels a result has.
//   - mistake.go: what is wrong in a file, and what to do.
//   - narrow.go: the query of a rule for one caller.
package rules
