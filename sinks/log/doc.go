// Package log writes batches as lines, as text for people or as JSON: one line for each batch,
// and optionally one for each entity.
//
// It is for a small cluster, or one node of a large one. The line of a batch reports what was read,
// what is missing and why; the lines of entities have the numbers that may be served.
package log
