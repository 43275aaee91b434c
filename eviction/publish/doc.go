// Package publish tells the cluster of a node's pressure: conditions of weir's own types, and a taint.
package publish
