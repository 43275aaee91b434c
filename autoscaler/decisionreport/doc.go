// Package decisionreport says what a decision of an autoscaler was and how it came about,
// to people and to machines. It decides nothing: package autoscaler does.
//
// Of tells a decision. The Report is the document that the API serves, whose field
// names are stable, and WriteText writes the same for people: the answer in the
// first line, each metric with its arithmetic, each limit in the order in which it
// was applied, what is missing and whose fault that is, what happens next, and
// how each pod was counted.
package decisionreport
