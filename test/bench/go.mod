module github.com/weir-metrics/weir/test/bench

go 1.26.0

require github.com/weir-metrics/weir v0.0.0

replace github.com/weir-metrics/weir => ../..
