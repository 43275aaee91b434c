package recordingcmd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// disk is a file on a disk that is full while failing is set.
type disk struct {
	bytes.Buffer
	failing bool
}

func (d *disk) Write(b []byte) (int, error) {
	if d.failing {
		return 0, errors.New("no space left on device")
	}
	return d.Buffer.Write(b)
}

var began = time.Date(2026, 11, 2, 15, 0, 0, 0, time.UTC)

// record writes the rounds of a minute, one each 15 s, and returns the writer's error.
func record(t *testing.T, to *disk, minute int, o recording.Options) (w *recording.Writer, err error) {
	t.Helper()
	o.Begin, o.Flush = began, time.Hour
	if w, err = recording.NewWriter(to, o); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		at := began.Add(time.Duration(minute)*time.Minute + time.Duration(i)*15*time.Second)
		b := &metric.Batch{Source: "s", Node: "n", Began: at, Ended: at}
		if err := w.Round(b, nil, at); err != nil {
			t.Fatal(err)
		}
	}
	return w, w.Close()
}

// A minute that was not written is a gap in the file, in its description, and in a part of it.
func TestInfoTellsGaps(t *testing.T) {
	var file disk
	if _, err := record(t, &file, 0, recording.Options{}); err != nil {
		t.Fatal(err)
	}
	file.failing = true
	w, err := record(t, &file, 1, recording.Options{Continues: true})
	if err == nil {
		t.Fatal("no error")
	}
	again, err := record(t, &file, 2, recording.Options{Continues: true, Missing: w.Missing()})
	if err == nil {
		t.Fatal("no error")
	}
	file.failing = false
	last, err := record(t, &file, 3, recording.Options{Continues: true, Missing: again.Missing()})
	if err != nil {
		t.Fatal(err)
	}
	if !last.Missing().IsZero() {
		t.Errorf("after the gap was written, records since %v are missing", last.Missing())
	}
	c, out := describe(t, file.Bytes())
	if want := "no: 1 gap without records: from 2026-11-02T15:01:00Z (2m)"; !strings.Contains(out, want) || c.rounds != 8 || c.runs != 1 {
		t.Errorf("%d rounds in %d runs:\n%swant %s", c.rounds, c.runs, out, want)
	}
	// A file that is also truncated has one row with both.
	if _, err := record(t, &file, 4, recording.Options{Continues: true}); err != nil {
		t.Fatal(err)
	}
	_, out = describe(t, file.Bytes()[:file.Len()-3])
	if rows := strings.Count(out, "\nwhole"); rows != 1 || !strings.Contains(out, "; 1 gap without records: from ") {
		t.Errorf("truncated: got %d rows \"whole\", want one, which has the truncation and the gap:\n%s", rows, out)
	}
}

// describe returns the content of a recording, and its description.
func describe(t *testing.T, content []byte) (*contents, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := readContents(f.frames(t.Context(), nil))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.write(&out, "run", 1); err != nil {
		t.Fatal(err)
	}
	return c, out.String()
}
