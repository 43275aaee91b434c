// Package series maps samples to Prometheus series: names, labels, values in base units and
// times. All code that serves, sends or queries samples as Prometheus series uses it, so that a
// series has one name.
package series
