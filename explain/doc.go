// Package explain answers why a number is there, is missing or is in doubt: for
// one container, pod or node, and for everything that is missing, grouped by
// cause.
//
// It is pure: a Explainer holds what was measured, the verdicts on it, what the API
// server says and how reads go, all as of one moment, and every answer is a function
// of it. An answer is data, with its sentences already in it, so that a command, a
// page and an Event say the same.
//
// Files: explainer.go has what is known, reading.go how a node is read. outcome.go judges a
// pod or node, from the verdicts that activeverdict.go weighs; survey.go judges many, rule.go
// any metric of anything. messages.go has the sentences, as templates with named
// arguments (template.go), messagewriter.go fills them in, values.go writes values and
// summaries, advice.go says what happens next and what to do. finding.go answers for a
// group of a pod or container in full (file.go gathers what is known of it), node.go for
// a node; evidence.go lists what an answer rests on, duplicates.go the duplicates that were
// rejected; answers.go puts findings together. report.go and cause.go group what is
// missing; reported.go does on a machine without a cluster. types.go has the answers.
//
// Readers of one namespace get answers. So only what is said of a node holds the
// error that its read ended with: errors name addresses.
package explain
