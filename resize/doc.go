// Package resize finds requests that fit what is used.
package resize
