// Package situations compares what weir says about a pod, its containers and
// its node with what really happened to them. Each situation is a line or two
// of the simulator's fault language, and it passes through everything between a
// kubelet's socket and the text that a person reads: the simulated kubelet
// answers over TLS on loopback, the kubelet source reads it, the processors
// judge, the memory sink stores, and package explain answers.
//
// Time is the simulator's: a round of fifteen seconds takes milliseconds. So one
// test plays hours with churn, and checks that nothing grows.
package situations
