// Package recorder writes what the processors are given into a file, so that
// the run can be replayed: for a bug report, to try another version of weir or another
// autoscaler on the same week.
//
// It takes batches before the pipeline and not after it (manager.Recorder), with
// the facts and the moment that go with them. Package weir/recording has the
// format; this one has the file: its limits, what becomes of one that is there already, and
// what happens when a disk is full.
package recorder
