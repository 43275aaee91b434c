// Package situations holds what weir says of a pod, its containers and its node
// against what really befell them: each situation is a line or two of the
// simulator's fault language, played through all there is between a kubelet's
// socket and the words a person reads. The simulated kubelet answers over TLS on
// loopback, the kubelet source reads it, the processors judge, the memory sink
// remembers, and package explain answers.
//
// Time is the simulator's: a round of fifteen seconds takes milliseconds.
package situations
