// Package weirdev is what weir's own APIs have in common, those of the group
// weir.dev: where they lie, how they say that a request cannot be served, and how
// a client asks.
package weirdev

// The group and version of weir's own APIs.
const (
	Group      = "weir.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// Path is where they lie, behind an API server and without one.
const Path = "/apis/" + APIVersion + "/"
