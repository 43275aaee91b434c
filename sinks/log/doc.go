// Package log writes what comes out of the pipeline as lines, for people or as
// JSON: one for each batch, or one for each entity as well.
//
// It is for a small cluster, or one node of a large one. The line of a batch says what was read,
// what is missing and why; the lines of entities have the numbers that may be served.
package log
