// Package eventsapi serves the Events that package eventlog keeps, on all objects of a namespace or on
// one of them. Whoever may list Events of the namespace in the API server may read them here.
//
// Events on nodes are in the namespace default.
package eventsapi
