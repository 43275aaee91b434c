// Package hpaevents writes Events on HorizontalPodAutoscalers whose pods have no metrics, with
// the pods and the reasons. kubectl describe hpa shows them:
//
//	Warning  MetricsMissing   2 of 3 pods have no CPU or memory. NodeTimeout (the node did not answer
//	                          in time): web-1, web-2. Run: kubectl weir explain namespace shop
//	Normal   MetricsComplete  All 3 pods have CPU and memory again.
//
// Reporter.Autoscalers returns the autoscalers of any pod.
//
// Package explain decides why a number is missing. throttle.go decides which Events are due;
// it has no clock, client or goroutine. targets.go keeps the autoscalers that package watcher
// reports and reads the selectors of their workloads, reporter.go checks the pods every few seconds, note.go writes the text and events.go
// writes the Event.
//
// Only what lasts is reported: a start-up causes no Event, and a temporary reason must last
// longer. An autoscaler gets at most one Event in five minutes, or one a minute if the reasons
// change, and there is a limit for all together. Only the leading replica writes. A new leader
// does not know what the last one wrote and may repeat it once.
package hpaevents
