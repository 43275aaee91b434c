package decisionreport

import "testing"

// BenchmarkOf tells a decision about ten pods; BenchmarkBriefOf tells it in a line.
func BenchmarkOf(b *testing.B) {
	d, c := crowd(10, 1)
	for b.Loop() {
		New(d, c)
	}
}

func BenchmarkBriefOf(b *testing.B) {
	d, c := crowd(10, 1)
	for b.Loop() {
		Summarize(d, c)
	}
}
