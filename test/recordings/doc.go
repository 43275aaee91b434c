// Package recordings records runs and replays them, and compares every number
// and verdict of the replay with the run, bit for bit: with the answers of a
// real kubelet, and with simulated kubelets with every fault.
package recordings
