// Package explaincmd is the "explain" command of weir and of kubectl's plugin: why a
// number is there, is missing or is in doubt. Both commands differ only in how they
// find a weir to ask.
//
// The answer comes first, in a sentence; then, group by group, why it is so, since
// when, what happens next and what to do. Programs read the same as JSON or YAML.
// That something is missing is an answer and no error: the exit status tells only
// whether there was one.
package explaincmd
