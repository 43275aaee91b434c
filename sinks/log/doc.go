// Package log writes what comes out of the pipeline as lines, for people or as
// JSON: one for each batch, or one for each entity as well.
//
// It is for watching a small cluster, or one node of a large one. The line of a
// batch says what was read and what is missing and why; the lines of entities
// hold the numbers that may be served, in the order the source reported them.
package log
