// Package lockfile locks the files of sinks, so that two processes do not write the same ones.
package lockfile
