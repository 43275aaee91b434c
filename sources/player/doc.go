// Package player gives the rounds of a recorded run, at the pace at which they were
// recorded, another, or as fast as they are taken.
//
// Each round comes with the moment and the facts that the processors were given
// when it was recorded, so that a pipeline comes to the same numbers. What is
// played is not shifted to the present: its times are those of the recording.
package player
