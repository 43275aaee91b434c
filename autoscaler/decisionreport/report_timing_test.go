package decisionreport

import "testing"

// BenchmarkOf tells a decision about ten pods; BenchmarkShortMessage tells it in a line.
func BenchmarkOf(b *testing.B) {
	d, c := crowd(10, 1)
	for b.Loop() {
		New(d, c)
	}
}

func BenchmarkShortMessage(b *testing.B) {
	d, c := crowd(10, 1)
	for b.Loop() {
		Summarize(d, c)
	}
}
