package decisionreport

import "testing"

// BenchmarkOf builds the report of a decision about ten pods; BenchmarkShortMessage builds its
// summary.
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
