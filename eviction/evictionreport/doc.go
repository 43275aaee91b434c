// Package evictionreport is the report on evictions of a node, for people and for programs. The
// report has each signal and its distance from each threshold, the pod that would be evicted next
// and why, the recent actions, and what triggers a read. Package reportbuilder makes it.
//
// Files: types.go has the report as the API serves it; text.go writes it for people.
package evictionreport
