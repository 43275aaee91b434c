// Package series says which Prometheus series a sample is: names, labels, values in
// base units and times. Whoever shows samples to Prometheus, or sends or asks for
// them there, goes by it, so that a series has one name however it came.
package series
