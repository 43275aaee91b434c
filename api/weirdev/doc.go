// Package weirdev is the common part of weir's own APIs, those of the group weir.dev: their path,
// their errors, and their client.
package weirdev

// The group and version of weir's own APIs.
const (
	Group      = "weir.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// Path is their path, behind an API server and without one.
const Path = "/apis/" + APIVersion + "/"
