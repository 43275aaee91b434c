package main

import "github.com/weir-metrics/weir/eviction/evictionreport"

var _ = evictionreport.New
