// Package recordings records runs and replays them, and holds every number and
// verdict of the replay to those of the run: bit for bit, on what a real kubelet
// said and on simulated ones with everything that can go wrong.
package recordings
