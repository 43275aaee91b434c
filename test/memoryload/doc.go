// Package memoryload is a child process in cgroups of its own that uses up memory or processor when
// it is told to: for tests of what the kernel says about that.
//
// The child is the test binary once more, so TestMain begins with Child.
package memoryload
