// Package otlp sends measured values, and the Events of the cluster, to an OpenTelemetry collector, or another receiver of OTLP over
// HTTP.
//
// Names, units and attributes are those of OpenTelemetry's semantic conventions for Kubernetes and
// containers. A metric that they do not have is called weir.KIND.NAME. docs/otlp.md has the table.
// Each value has the time at which the node read it. At the end of a series a point without a value is
// sent. Package push describes the queue.
//
//	options.go   Options, and their form in --sink
//	names.go     the names of the conventions
//	resource.go  the attributes of an entity
//	request.go   one request
//	send.go      the requests are sent
//	events.go    Events as log records
package otlp
