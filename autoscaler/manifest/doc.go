// Package manifest reads the file of one HorizontalPodAutoscaler or Autoscaler, in
// YAML or JSON, as people write it for kubectl: strictly, with the defaults of the
// API server, and with errors that name the field.
package manifest
