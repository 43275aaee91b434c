// Package eventlog keeps the last Events of the API server in memory: what kubelets, the scheduler and
// controllers report about pods, nodes and autoscalers. Heapster's eventer did this for its sinks.
//
// The API server forgets an Event after an hour. A Log keeps the newest ones, bounded by number and age.
// An Event that is counted up replaces its earlier state, as its UID is the same. Equal
// Events of one object are shown as one.
//
//	event.go  Event, of package event: what is kept of the API server's object
//	log.go    Log: what is kept, and what is read
//	watch.go  Watcher: the API server's Events, in pages and then by a watch
package eventlog
