// Package evaluate answers what a specification would do now: with the pods and
// the metrics of this moment, or of an earlier one that memory still holds. It
// reads and never writes, neither scales nor status.
package evaluate
