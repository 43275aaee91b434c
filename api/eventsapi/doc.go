// Package eventsapi serves the Events that package eventlog keeps, on all objects, on those of a
// namespace or on one of them. Whoever may list these Events in the API server may read them here.
//
// Events on nodes are in the namespace default.
package eventsapi
