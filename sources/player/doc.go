// Package player gives the rounds of a recorded run, at the pace at which they were
// recorded, another, or as fast as they are taken.
//
// Each round has the time and the facts that the processors got when it was recorded, so a
// pipeline gives the same numbers. Times are those of the recording.
package player
