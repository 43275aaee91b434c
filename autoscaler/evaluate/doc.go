// Package evaluate answers what a specification would do with the pods and metrics of now, or of
// an earlier time in weir's history. It reads and never writes.
package evaluate
