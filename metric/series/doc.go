// Package series maps samples to Prometheus series: names, labels, values in base units and
// times. All code that serves, sends or queries samples as Prometheus series uses it, so that a
// series has one name.
//
//	series.go   names, values and times; labels.go labels
//	filter.go   which series are selected; profile.go the metrics that most people use
package series
