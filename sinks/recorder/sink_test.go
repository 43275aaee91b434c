package recorder_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	format "github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/recorder"
	"github.com/weir-metrics/weir/test/cmptest"
)

var began = time.Date(2026, 11, 2, 15, 0, 0, 0, time.UTC)

// write gives s rounds of a node with the numbers from to to-1, a quarter of a minute apart.
// The Bytes of each are its number.
func write(t *testing.T, s *recorder.Sink, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		at := began.Add(time.Duration(n) * 15 * time.Second)
		b := &metric.Batch{Source: "s", Node: "n", Began: at, Ended: at, Bytes: n}
		for i := range 50 {
			b.Add(metric.Entity{Kind: metric.Pod, Node: "n", Pod: metric.PodName(fmt.Sprint(i, "-", n))})
		}
		if err := s.Record(t.Context(), b, nil, at); err != nil {
			t.Fatal(err)
		}
	}
}

// story returns the content of files: the numbers of rounds, and "run" where a run begins.
func story(t *testing.T, paths ...string) string {
	t.Helper()
	var words []string
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := format.NewReader(bufio.NewReader(f))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		defer r.Close()
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			switch {
			case err != nil:
				t.Fatalf("%s: %v", path, err)
			case f.Kind == format.Begin && f.Fresh:
				words = append(words, "run")
			case f.Kind == format.Begin && !f.Missing.IsZero():
				words = append(words, fmt.Sprintf("gap(%v-%v)", f.Missing.Sub(began), f.Now.Sub(began)))
			case f.Kind == format.Gone:
				words = append(words, "gone")
			case f.Kind == format.Round:
				words = append(words, fmt.Sprint(f.Batch.Bytes))
			}
		}
	}
	return strings.Join(words, " ")
}

func open(t *testing.T, o recorder.Options) *recorder.Sink {
	t.Helper()
	s, err := recorder.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t *testing.T, s *recorder.Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFileIsGoneOnWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	s := open(t, recorder.Options{Path: path})
	write(t, s, 0, 3)
	s.Forget("s", "n")
	closed(t, s)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the file's mode is %o, want 600: it names everything in a cluster", got)
	}
	// Like the file of a weir that was killed: it ends within a block.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("F\x80\x00\x00"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s = open(t, recorder.Options{Path: path})
	write(t, s, 3, 5)
	closed(t, s)
	expect(t, story(t, path), "run 0 1 2 gone run 3 4")
}

// A run in several files is one run when they are joined.
func TestFullFilesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	s := open(t, recorder.Options{Path: path, MaxAge: time.Minute, Keep: 2})
	write(t, s, 0, 14)
	closed(t, s)
	expect(t, story(t, path+".2", path+".1", path), "4 5 6 7 8 9 10 11 12 13")
	expect(t, story(t, path), "12 13")
	if _, err := os.Stat(path + ".3"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file more than were to be kept (%v)", err)
	}
}

func TestFilesStayWithinTheirSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	const most = 64 << 10
	s := open(t, recorder.Options{Path: path, MaxSize: most, Keep: -1, Flush: time.Second})
	write(t, s, 0, 2000)
	closed(t, s)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most+4096 {
		t.Errorf("the file has %d bytes, want about %d at most", info.Size(), most)
	}
	if got := story(t, path); !strings.HasSuffix(got, "1998 1999") || strings.HasPrefix(got, "run") {
		t.Errorf("the file holds %.40s..., want the last of the rounds", got)
	}
	if _, err := os.Stat(path + ".1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a full file was kept (%v)", err)
	}
}

// After an error writing is tried again after a minute.
func TestWritingIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run")
	s := open(t, recorder.Options{Path: path, MaxAge: time.Minute})
	write(t, s, 0, 4)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	try := func(n int) error {
		at := began.Add(time.Duration(n) * 15 * time.Second)
		return s.Record(t.Context(), &metric.Batch{Source: "s", Node: "n", Began: at, Ended: at, Bytes: n}, nil, at)
	}
	if err := try(4); err == nil { // there is no file to rename
		t.Error("no error, want that the next file cannot be begun")
	}
	s.Forget("s", "n")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := try(5); err == nil {
		t.Error("no error 15 s later, want that it is tried again after a minute")
	}
	if err := try(8); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	closed(t, s)
	expect(t, story(t, path), "gap(1m0s-2m0s) gone 8")
}

// A file that a power failure has damaged is kept, and a new one is begun.
func TestADamagedFileIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	s := open(t, recorder.Options{Path: path})
	write(t, s, 0, 3)
	closed(t, s)
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body = append(body, make([]byte, 4096)...)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, recorder.Options{Path: path})
	if s.SetAside() == nil {
		t.Error("nothing is said of the damage")
	}
	write(t, s, 3, 5)
	closed(t, s)
	expect(t, story(t, path), "run 3 4")
	if kept, err := os.ReadFile(path + ".1"); err != nil || len(kept) != len(body) {
		t.Errorf("%d bytes were kept (%v), want %d", len(kept), err, len(body))
	}
}

// If the disk was full before the first header was written, the file has a part of a header.
func TestAPartOfAHeaderIsWrittenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(path, []byte("WEIR"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, recorder.Options{Path: path})
	write(t, s, 0, 2)
	closed(t, s)
	expect(t, story(t, path), "run 0 1")
}

func TestAFileHasOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	s := open(t, recorder.Options{Path: path})
	if _, err := recorder.Open(recorder.Options{Path: path}); err == nil || !strings.Contains(err.Error(), "another weir writes it") {
		t.Errorf("got %v, want that another weir writes it", err)
	}
	closed(t, s)
	closed(t, open(t, recorder.Options{Path: path}))
}

func TestOthersFilesAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diary")
	if err := os.WriteFile(path, []byte("dear diary"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := recorder.Open(recorder.Options{Path: path})
	if want := "continue " + path + ": this is not a recording: it does not begin with the bytes of one: name another file, or remove this one"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if body, _ := os.ReadFile(path); string(body) != "dear diary" {
		t.Errorf("the file is %q now", body)
	}
}

// parse parses the text after the name and colon of a sink.
func parse(t *testing.T, spec string) (recorder.Options, error) {
	t.Helper()
	config, query, _ := strings.Cut(spec, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return recorder.ParseOptions(config, values)
}

func TestOptions(t *testing.T) {
	for spec, want := range map[string]recorder.Options{
		"run":                           {Path: "run"},
		"/d/run?max-size=500M&keep=7":   {Path: "/d/run", MaxSize: 500e6, Keep: 7},
		"run?max-size=2GiB&max-age=24h": {Path: "run", MaxSize: 2 << 30, MaxAge: 24 * time.Hour},
		"run?max-size=0&keep=0":         {Path: "run", MaxSize: -1, Keep: -1},
		"run?flush=1s":                  {Path: "run", Flush: time.Second},
	} {
		got, err := parse(t, spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		cmptest.Equal(t, spec, want, got)
	}
}

func TestOptionsThatAreNone(t *testing.T) {
	for spec, want := range map[string]string{
		"":                 "it needs a file to write: write recording:FILE",
		"run?max=1":        `no option is called "max": there are flush, keep, max-age, max-size`,
		"run?max-size=big": `option max-size: "big" is not a size: write 500M or 2Gi`,
		"run?max-size=1":   "option max-size: must be at least 64Ki",
		"run?max-age=-1h":  "option max-age: must not be negative; 0 means no limit",
		"run?keep=-1":      "option keep: must not be negative; 0 keeps only the file that is written",
		"run?flush=0s":     "option flush: it cannot be 0s: at least 1ms",
	} {
		if _, err := parse(t, spec); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", spec, err, want)
		}
	}
}

var _ interface {
	Record(context.Context, *metric.Batch, *cluster.Facts, time.Time) error
} = (*recorder.Sink)(nil)

// A file that cannot be opened, as on a read-only disk, is tried again after a minute. The gap is
// recorded.
func TestFileComesLater(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "run")
	s, err := recorder.Open(recorder.Options{Path: path})
	if err == nil {
		t.Fatal("opened a file below a file")
	}
	began := time.Now()
	record := func(after time.Duration) error {
		return s.Record(t.Context(), &metric.Batch{Source: "s", Node: "n", Bytes: 1}, nil, began.Add(after))
	}
	if err := record(2 * time.Minute); err == nil {
		t.Error("recorded below a file")
	}
	if err := errors.Join(os.Remove(folder), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := record(2*time.Minute + 30*time.Second); err == nil || !strings.Contains(err.Error(), "the next try is after 1m") {
		t.Errorf("half a minute later: got %v, want that the next try is later", err)
	}
	if err := record(4 * time.Minute); err != nil {
		t.Errorf("after a minute: %v", err)
	}
	closed(t, s)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
