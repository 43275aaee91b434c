// Package memoryload runs a child process in its own cgroups, which uses memory
// or CPU on order. It is for tests of the kernel's notices.
//
// The child is the same test binary, so TestMain must call Child first.
package memoryload
