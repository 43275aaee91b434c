// Package document has the report on evictions of a node, which the API serves, and its text for
// people.
//
// Package evictionreport makes the report. The packages are separate so that programs that only
// read a report, such as kubectl-weir, do not include the code that evicts.
//
// Files: document.go has the types; text.go writes the text; amount.go formats amounts.
package document
