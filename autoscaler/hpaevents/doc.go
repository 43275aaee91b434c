// Package hpaevents writes Events on HorizontalPodAutoscalers that have pods without metrics, with
// the pods and the reasons. README.md has the rules. Reporter.Autoscalers returns the
// autoscalers of a pod.
//
// Package explain decides why a number is missing. throttle.go decides which Events are due; it has
// no client and no goroutine. targets.go keeps the autoscalers that package watcher reports, and
// reads the selectors of their workloads. reporter.go checks the pods, note.go writes the text, and
// events.go writes the Event.
package hpaevents
