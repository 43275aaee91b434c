// Package hpaevents says, where people look who wonder about a
// HorizontalPodAutoscaler, which of its pods have no metrics and why: in Events on
// the autoscaler, which kubectl describe hpa shows.
//
//	Warning  MetricsMissing   2 of 3 pods have no CPU or memory. NodeTimeout (the node did not answer
//	                          in time): web-1, web-2. Ask: kubectl weir explain namespace shop
//	Normal   MetricsComplete  All 3 pods have CPU and memory again.
//
// It also tells, of any pod, which autoscalers go by it (Announcer.Autoscalers).
//
// Nothing here decides why a number is missing: package explain does. What is to be
// said, and when, is the book's affair (book.go): it has no clock, no client and no
// goroutine. Around it are a list-and-watch of the autoscalers (watch.go), a
// slow walk over their targets' scale, which tells the pods (targets.go), and the
// loop that looks at the pods every few seconds (announce.go).
//
// Start-ups say nothing: only what lasts is announced, and what passes by itself
// must last longer. One autoscaler is given an Event at most every five minutes,
// or every minute if the reasons change; all together have a bound. Only the
// leading replica speaks, and what was said is not remembered across leaders: a
// new one may say it once more.
package hpaevents
