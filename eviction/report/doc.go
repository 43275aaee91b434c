// Package report tells what a node's guard sees: signals, distances, who would go next, and why.
package report
