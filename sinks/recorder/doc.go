// Package recorder writes the input of the processors to a file, so that the run can be
// replayed: for a bug report, or to try another version of weir or another autoscaler.
//
// It takes batches before the pipeline (manager.Recorder), with their facts and times. Package
// recording has the format; this package has the file: its limits, existing files, full disks.
package recorder
