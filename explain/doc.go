// Package explain answers why a number is there, is missing or is in doubt: for one container, pod
// or node, and for everything that is missing, grouped by cause.
//
// It is pure. An Explainer has the samples, the verdicts, the cluster facts and the states of the
// sources, all at one moment, and every answer is a function of it. An answer is data that already
// contains its sentences, so that a command, a page and an Event have the same words.
//
// Files: explainer.go has the input, reading.go how a node is read. outcome.go has what a decision
// is based on and what it returns. precedence.go is the order in which reasons are weighed, with the
// verdicts that activeverdict.go ranks; survey.go decides about many pods and nodes, rule.go about
// any metric of any entity. messages.go has the sentences, as templates with named arguments
// (template.go); messagewriter.go fills them in, values.go formats values and summaries, advice.go
// describes what happens next and what to do. finding.go answers in full for a group of a pod or
// container (file.go collects what is known of it), node.go for a node; evidence.go lists the
// evidence of an answer, duplicates.go the duplicates that were rejected; answers.go combines
// findings. report.go and cause.go group what is missing, risk.go has what may soon be; reported.go does so on a machine without
// a cluster. types.go has the types of the answers.
//
// Readers who may see only one namespace get answers too. Errors contain addresses, so only the
// answer about a node contains the error of its read.
package explain
