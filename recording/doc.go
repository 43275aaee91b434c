// Package recording is the file format of a recorded run: what sources said and
// what the API server said, before any processor made something of it, so that
// a replay through the same pipeline comes to the same numbers.
//
// # What is written
//
// A file is a header and a row of blocks. A block has a length and a checksum,
// and holds frames, compressed: rounds (one read of one source, with the moment
// and the facts that the processors were given beside it), changes of facts,
// sources that are gone, scale targets. Frames refer to what earlier ones of the file
// said: names by their place in a table, numbers by their difference. From time
// to time, and at the beginning, a Begin frame forgets all of that.
// docs/recording.md has every byte.
//
// # What it promises
//
// A Round is read back bit for bit, but for its error, of which the text, the
// reason and whether a deadline passed remain. A file that ends anywhere can be
// read up to its last whole block. A reader skips frames and blocks of kinds it
// does not know, and metrics whose names it does not know. Files can be joined
// by joining their bytes.
//
// # What it leaves to others
//
// Files, their rotation and their limits (sinks/recorder); time and pace
// (sources/player); the pipeline (the manager, and app). Recordings hold
// names, labels and numbers, and no secrets: environment variables, annotations of pods and
// the like never get into facts.
package recording
