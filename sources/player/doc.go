// Package player plays the rounds of a recorded run at their original speed, at another speed, or
// as fast as possible.
//
// Each round has the time and the facts that the processors got when it was recorded, so a pipeline
// gives the same numbers. All times are those of the recording.
package player
