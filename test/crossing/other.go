//go:build !linux

package main

import "log"

func main() { log.Fatal("only Linux has the memory figures to measure") }
