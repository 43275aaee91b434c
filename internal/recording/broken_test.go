package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// record returns a recording of n rounds, and the end of each of its blocks.
func record(t *testing.T, n int) (file []byte, ends []int) {
	t.Helper()
	var out bytes.Buffer
	w := must(recording.NewWriter(&out, recording.Options{Begin: began, Flush: -1}))
	fixture := newFixture(7, 2)
	for range n {
		r := fixture.step()
		check(t, w.Round(r.b, r.facts, r.now))
		ends = append(ends, out.Len())
	}
	check(t, w.Close())
	return out.Bytes(), ends
}

// read returns how many rounds can be read, and the error after them.
func read(file []byte) (rounds int, err error) {
	r, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if err != nil {
			return rounds, err
		}
		if f.Kind == recording.Round {
			rounds++
		}
	}
}

// A file that ends early is read up to its last complete block, and the error says so.
func TestACutFileIsReadUpToItsLastWholeBlock(t *testing.T) {
	file, ends := record(t, 12)
	for n := range file {
		want := 0
		whole := n == 0
		for _, end := range ends {
			if end <= n {
				want++
			}
		}
		got, err := read(file[:n])
		var none *recording.NoRecordingError
		var cut *recording.TruncatedError
		switch {
		case n == 0:
			if !errors.As(err, &none) {
				t.Fatalf("got %v, want that it is no recording", err)
			}
		case errors.Is(err, io.EOF): // at the end of a block
			whole = true
		case !errors.As(err, &cut):
			t.Fatalf("%d bytes: got %v, want that it is cut", n, err)
		}
		if got != want {
			t.Fatalf("%d bytes: %d rounds were read, want %d (whole: %v)", n, got, want, whole)
		}
	}
}

// A changed byte is detected, and its block is not used.
func TestAChangedByteIsNoticed(t *testing.T) {
	file, ends := record(t, 6)
	for n := 8; n < len(file); n++ {
		bad := bytes.Clone(file)
		bad[n] ^= 0x40
		want := 0
		for _, end := range ends {
			if end <= n {
				want++
			}
		}
		got, err := read(bad)
		var damaged *recording.DamagedError
		var cut *recording.TruncatedError // if the length grew
		if got != want || !errors.As(err, &damaged) && !errors.As(err, &cut) {
			t.Fatalf("byte %d: %d rounds and %v, want %d and that it is damaged", n, got, err, want)
		}
	}
}

// The joined bytes of several files are one recording. Blocks of unknown kinds are skipped.
func TestFilesAreJoinedAndUnknownBlocksSkipped(t *testing.T) {
	one, _ := record(t, 5)
	two, _ := record(t, 3)
	// Kind 'Z', 3 bytes, and their CRC-32C, which another program computed.
	unknown := []byte{'Z', 3, 0, 0, 0, 0xa4, 0xaa, 0x4c, 0xeb, 1, 2, 3}
	joined := bytes.Join([][]byte{one, unknown, two}, nil)
	got, err := read(joined)
	if got != 8 || !errors.Is(err, io.EOF) {
		t.Errorf("%d rounds and %v, want 8 and the end", got, err)
	}
}

// The first bytes of a file are those in docs/recording.md.
func TestOthersAreNoRecording(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "this is not a recording: it is empty",
		"# TYPE x counter\n":  "this is not a recording: it does not begin with the bytes of one",
		"WEIRREC\x03whatever": "this is not a recording: it has version 3, and this weir reads version 2: use the weir that wrote it",
	} {
		if _, err := recording.NewReader(bytes.NewReader([]byte(text))); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// Scale targets, and events between rounds, are read back.
func TestScaleTargets(t *testing.T) {
	var out bytes.Buffer
	w := must(recording.NewWriter(&out, recording.Options{Begin: began, By: "weir test"}))
	want := &recording.ScaleTarget{
		Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", Replicas: 3, Current: 2, Selector: "app=web",
		HPA: "web", Spec: []byte(`{"maxReplicas":10}`),
	}
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: began})
	check(t, w.Scale(want, began.Add(time.Second)))
	check(t, w.Facts(facts, began.Add(2*time.Second)))
	check(t, w.Facts(facts, began.Add(3*time.Second))) // nothing has changed
	check(t, w.Close())
	var got []recording.Frame
	r := must(recording.NewReader(&out))
	defer r.Close()
	for f, err := r.Next(); !errors.Is(err, io.EOF); f, err = r.Next() {
		check(t, err)
		got = append(got, f)
	}
	if diff := cmp.Diff([]recording.Frame{
		{Kind: recording.Begin, Now: began.Add(time.Second), Fresh: true, By: "weir test"},
		{Kind: recording.Scale, Now: began.Add(time.Second), Scale: want},
		{Kind: recording.Facts, Now: began, Facts: facts},
	}, got, equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The memory of a reader is limited.
func TestMemoryIsBounded(t *testing.T) {
	file, _ := record(t, 60)
	r := must(recording.NewReaderMemory(bytes.NewReader(file), 20_000))
	defer r.Close()
	for {
		_, err := r.Next()
		if err == nil {
			continue
		}
		var damaged *recording.DamagedError
		if !errors.As(err, &damaged) {
			t.Errorf("got %v, want that it is more than there is memory for", err)
		}
		return
	}
}

// Samples of a few bytes cannot exceed the memory limit.
func TestEmptySamplesCount(t *testing.T) {
	var out bytes.Buffer
	w := must(recording.NewWriter(&out, recording.Options{Begin: began}))
	b := &metric.Batch{Source: "s", Node: "n", Began: began, Ended: began}
	for range 2000 {
		b.Add(metric.Entity{})
	}
	check(t, w.Round(b, nil, began))
	check(t, w.Close())
	r := must(recording.NewReaderMemory(&out, 1<<20))
	defer r.Close()
	for {
		_, err := r.Next()
		if err != nil {
			if !strings.Contains(err.Error(), "more than this reader has memory for") {
				t.Errorf("got %v, want that it is more than there is memory for", err)
			}
			return
		}
	}
}

// An unknown number is an error, and is not used as an index.
func TestKindsThatDoNotExist(t *testing.T) {
	var out bytes.Buffer
	w := must(recording.NewWriter(&out, recording.Options{Begin: began}))
	b := &metric.Batch{Source: "s", Node: "n", Began: began, Ended: began}
	b.Add(metric.Entity{Kind: 77, Node: "n"})
	check(t, w.Round(b, nil, began))
	check(t, w.Close())
	_, err := read(out.Bytes())
	if want := "the recording is damaged at byte 8: read a round record: 77 where there are 6; everything before that byte is whole"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A Gone is written even if the source was last read before the last Begin.
func TestGoneAfterABegin(t *testing.T) {
	var out bytes.Buffer
	w := must(recording.NewWriter(&out, recording.Options{Begin: began, Restart: time.Minute}))
	for i, node := range []metric.NodeName{"a", "b"} {
		at := began.Add(time.Duration(i) * time.Hour)
		check(t, w.Round(&metric.Batch{Source: "s", Node: node, Began: at, Ended: at}, nil, at))
	}
	check(t, w.Gone("s", "a"))
	check(t, w.Close())
	r := must(recording.NewReader(&out))
	defer r.Close()
	var got []string
	for f, err := r.Next(); !errors.Is(err, io.EOF); f, err = r.Next() {
		check(t, err)
		got = append(got, fmt.Sprint(f.Kind, " ", f.Node))
	}
	if want := []string{"begin ", "round a", "begin ", "round b", "gone a"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// For no input does a reader panic or take more memory than allowed. The frames that it returns
// can be written and read again.
func FuzzReader(f *testing.F) {
	for seed := range uint64(8) { // small ones, because the fuzzer runs each of them many times
		var out bytes.Buffer
		w := must(recording.NewWriter(&out, recording.Options{Begin: began}))
		fixture := newFixture(seed, 1)
		for range 2 {
			r := fixture.step()
			r.b.Samples = r.b.Samples[:min(1, len(r.b.Samples))]
			if err := w.Round(r.b, r.facts, r.now); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(recording.Unpacked(out.Bytes()))
	}
	f.Fuzz(func(t *testing.T, frames []byte) {
		r := must(recording.NewReaderMemory(bytes.NewReader(recording.Packed(frames)), 16<<20))
		defer r.Close()
		var again bytes.Buffer
		w := must(recording.NewWriter(&again, recording.Options{Begin: began}))
		var rounds []round
		for {
			f, err := r.Next()
			if err != nil {
				break
			}
			if f.Kind == recording.Round && len(rounds) < 16 {
				b := new(metric.Batch)
				b.CopyFrom(f.Batch)
				if w.Round(f.Batch, f.Facts, f.Now) != nil {
					return // a time that no clock has
				}
				rounds = append(rounds, round{b, f.Facts, f.Now})
			}
		}
		check(t, w.Close())
		if len(rounds) == 0 {
			return
		}
		back := must(recording.NewReader(&again))
		defer back.Close()
		for i, want := range rounds {
			f := nextRound(t, back)
			if len(f.Batch.Samples) != len(want.b.Samples) {
				t.Fatalf("round %d: %d samples, want %d", i, len(f.Batch.Samples), len(want.b.Samples))
			}
			if diff := cmp.Diff(want.b.Samples, f.Batch.Samples, equal); diff != "" {
				t.Fatalf("round %d (-want +got):\n%s", i, diff)
			}
		}
	})
}
