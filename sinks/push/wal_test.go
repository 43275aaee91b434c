package push

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// killed returns a Sender that nobody runs, and a function that ends it as a kill does: what is in
// memory is lost, and the lock is free.
func killed(t testing.TB, o Options) (s *Sender, kill func()) {
	t.Helper()
	o.URL, o.HTTP = "http://127.0.0.1:1", config.DefaultHTTPClientConfig
	s, err := NewSender(o, "test", "samples")
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		if err := s.wal.close(); err != nil {
			t.Error(err)
		}
	}
}

// deliver runs a Sender until it has sent everything, and returns the requests.
func deliver(t *testing.T, s *Sender) (sent []string) {
	t.Helper()
	s.SetSend(func(_ context.Context, request []byte) (int, error) {
		sent = append(sent, string(request))
		return 0, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx, func(time.Duration) {}); err != nil {
		t.Error(err)
	}
	return sent
}

// put queues requests with these numbers, each of three items.
func put(s *Sender, from, to int) (all []string) {
	for i := from; i <= to; i++ {
		text := fmt.Sprint("request ", i)
		s.Put([]byte(text), 3, time.Unix(int64(i), 0))
		all = append(all, text)
	}
	return all
}

func writeLog(t testing.TB, s *Sender) {
	t.Helper()
	if err := s.wal.sync(s.queue); err != nil {
		t.Fatal(err)
	}
}

// requests returns how many requests a folder has. Only weir's user may read them.
func requests(t *testing.T, folder string) (files int) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".test") {
			files++
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("others may read %s: %v", e.Name(), info.Mode())
		}
	}
	return files
}

// What waits when weir is killed, and killed again, is sent once, in order and unchanged. When all is
// sent, the folder has no file left.
func TestWALSurvivesKills(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	o := Options{WAL: filepath.Join(t.TempDir(), "new", "wal"), Logger: zap.New(core)}
	var want []string
	for run := range 2 {
		s, kill := killed(t, o)
		want = append(want, put(s, run*10+1, run*10+10)...)
		if got := s.queue.unlogged(); got != 30 {
			t.Errorf("%d items are not in the log before it is written, want 30", got)
		}
		writeLog(t, s)
		if got := s.queue.unlogged(); got != 0 {
			t.Errorf("%d items are not in the log", got)
		}
		kill()
	}
	lines.TakeAll()
	s, _ := killed(t, o)
	if diff := cmp.Diff(want, deliver(t, s)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if files := requests(t, o.WAL); files != 0 {
		t.Errorf("%d files are left", files)
	}
	if all := lines.All(); len(all) != 1 || all[0].ContextMap()["samples"] != int64(60) {
		t.Errorf("the log says %v", all)
	}
}

// When weir ends while the receiver is away, nothing is lost, and nothing is counted as dropped.
func TestWALAtTheEnd(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // the log has the time that it needs
		core, lines := observer.New(zap.InfoLevel)
		o := Options{WAL: folder, Grace: time.Second, Logger: zap.New(core)}
		s, _ := killed(t, o)
		s.SetSend(func(ctx context.Context, _ []byte) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		want := put(s, 1, 3)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Run(ctx, func(time.Duration) {}); err != nil {
			t.Error(err)
		}
		if got := testutil.ToFloat64(s.meters.dropped); got != 0 {
			t.Errorf("%v items are counted as dropped", got)
		}
		if all := lines.All(); len(all) != 1 || all[0].Message != "samples wait in the write-ahead log for the next start" {
			t.Errorf("the log says %v", all)
		}
		s, _ = killed(t, o)
		if diff := cmp.Diff(want, deliver(t, s)); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

// The folder takes no more than the queue may, also if all requests are small. The oldest items are
// dropped and counted, also when a log is read that is larger than the queue.
func TestWALIsBounded(t *testing.T) {
	o := Options{WAL: t.TempDir(), Queue: 10 * walBlock}
	s, kill := killed(t, o)
	for i := range 25 {
		put(s, i, i)
		writeLog(t, s)
		if files := requests(t, o.WAL); files > 10 {
			t.Fatalf("%d files for a queue of 10 blocks", files)
		}
	}
	if got := testutil.ToFloat64(s.meters.dropped); got != 3*15 {
		t.Errorf("%v items dropped, want 45", got)
	}
	kill()
	o.Queue = 4 * walBlock
	s, kill = killed(t, o)
	defer kill()
	if got := testutil.ToFloat64(s.meters.dropped); got != 3*6 {
		t.Errorf("%v items of the log dropped, want 18", got)
	}
	writeLog(t, s)
	if files := requests(t, o.WAL); files != 4 {
		t.Errorf("%d files, want 4", files)
	}
}

// A log that cannot be written delays neither Put nor Run, and is logged once.
func TestWALThatCannotBeWritten(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	failed := make(chan struct{}) // closed by the first line, which says that the log fails
	var once sync.Once
	folder := filepath.Join(t.TempDir(), "wal")
	s, _ := killed(t, Options{WAL: folder, Logger: zap.New(core, zap.Hooks(func(zapcore.Entry) error {
		once.Do(func() { close(failed) })
		return nil
	}))})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	want := put(s, 1, 50)
	var sent []string
	s.SetSend(func(_ context.Context, request []byte) (int, error) {
		<-failed
		sent = append(sent, string(request))
		return 0, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx, func(time.Duration) {}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if all := lines.All(); len(all) != 1 || !strings.Contains(all[0].Message, "cannot be written") {
		t.Errorf("the log says %v", all)
	}
	if testutil.ToFloat64(s.meters.walErrors) == 0 {
		t.Error("the error is not counted")
	}
}

// Torn files, one too large to be a request, and those of others are no obstacle: the other requests
// are sent. The last of the damaged files are kept under another name.
func TestDamagedWAL(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	o := Options{WAL: t.TempDir(), Logger: zap.New(core)}
	s, kill := killed(t, o)
	want := slices.Delete(put(s, 1, 8), 1, 7) // 1 and 8
	writeLog(t, s)
	damaged := s.wal.path
	kill()
	for number := range uint64(6) {
		size := int64(30)
		if number == 3 {
			size = 1 << 40 // of a sparse file
		}
		if err := os.Truncate(damaged(2+number), size); err != nil {
			t.Fatal(err)
		}
	}
	others := []string{"notes.test", "00000000000000000001.other"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(o.WAL, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, _ = killed(t, o)
	if diff := cmp.Diff(want, deliver(t, s)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if all := lines.All(); len(all) == 0 || !strings.Contains(all[0].Message, "are damaged: they are lost") || all[0].ContextMap()["requests"] != int64(6) {
		t.Errorf("the log says %v", all)
	}
	for number := range uint64(6) {
		_, err := os.Stat(damaged(2 + number))
		_, keptErr := os.Stat(damaged(2+number) + damagedSuffix)
		if kept := number >= 2; !errors.Is(err, fs.ErrNotExist) || (keptErr == nil) != kept {
			t.Errorf("file %d: got %v, and set aside %v; want it gone, and set aside: %v", 2+number, err, keptErr, kept)
		}
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(o.WAL, name)); err != nil {
			t.Error(err)
		}
	}
}

// A folder that cannot be used, as on a read-only disk, does not keep weir from starting. Requests wait in
// memory. When the folder can be used, they and what an earlier weir left are in the log.
func TestWALFolderComesLater(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "wal")
	s, kill := killed(t, Options{WAL: folder})
	left := put(s, 1, 2)
	writeLog(t, s)
	kill()
	aside := folder + ".aside"
	if err := errors.Join(os.Rename(folder, aside), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.InfoLevel)
		s, _ := killed(t, Options{WAL: folder, Logger: zap.New(core), Grace: time.Second})
		s.SetSend(func(ctx context.Context, _ []byte) (int, error) { // the receiver does not answer
			<-ctx.Done()
			return 0, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx, func(time.Duration) {}) }()
		all := append(put(s, 11, 12), left...)
		time.Sleep(5 * walRetry / 2) // not at the moment of a try, which would make the folder
		if got := s.queue.unlogged(); got != 6 {
			t.Errorf("%d items are not in the log without a folder, want 6", got)
		}
		if err := errors.Join(os.Remove(folder), os.Rename(aside, folder)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(walRetry)
		synctest.Wait()
		if got := requests(t, folder); got != len(all)-1 { // the one that is being sent is not counted
			t.Errorf("the folder has %d requests, want %d", got, len(all)-1)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, want := range []string{"the write-ahead log cannot be written", "of the last run wait in the write-ahead log", "that wait again"} {
			if lines.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, want) }).Len() != 1 {
				t.Errorf("the log has not one line with %q: %v", want, lines.All())
			}
		}
	})
}

// Two weirs never share a folder.
func TestWALIsLocked(t *testing.T) {
	o := Options{URL: "http://127.0.0.1:1", HTTP: config.DefaultHTTPClientConfig, WAL: t.TempDir()}
	_, kill := killed(t, o)
	if _, err := NewSender(o, "test", "samples"); err == nil || !strings.Contains(err.Error(), "another weir writes it") {
		t.Errorf("got %v, want that another weir writes it", err)
	}
	kill()
	_, kill = killed(t, o)
	kill()
}

// A file of the log is read as it was written, or not at all: no byte can be missing, added or
// changed.
func FuzzParseParcel(f *testing.F) {
	f.Add(appendFile(nil, &queuedRequest{body: []byte("request"), items: 7, since: time.Unix(1, 2)}), uint16(9), byte(1))
	f.Add([]byte(walMagic), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, change byte) {
		p, err := parseFile(slices.Clone(data))
		if err != nil {
			p = queuedRequest{body: data, items: int(at), since: time.Unix(0, int64(at))}
		}
		file := appendFile(nil, &p)
		if err == nil && !slices.Equal(file, data) {
			t.Errorf("read %x, wrote %x", data, file)
		}
		again, err := parseFile(file)
		if err != nil || !slices.Equal(again.body, p.body) || again.items != p.items || !again.since.Equal(p.since) {
			t.Errorf("wrote %+v, read %+v, %v", p, again, err)
		}
		place := int(at) % len(file)
		if _, err := parseFile(file[:place]); err == nil {
			t.Errorf("the first %d of %d bytes are read", place, len(file))
		}
		if _, err := parseFile(append(slices.Clone(file), change)); err == nil {
			t.Error("a longer file is read")
		}
		if change != 0 {
			file[place] ^= change
			if _, err := parseFile(file); err == nil {
				t.Errorf("a file with a changed byte %d is read", place)
			}
		}
	})
}

// BenchmarkWAL writes a request of 28 kB to the log and removes it: one of remote write with 5,000
// samples.
func BenchmarkWAL(b *testing.B) {
	s, kill := killed(b, Options{WAL: b.TempDir()})
	defer kill()
	s.Put(make([]byte, 28_000), 5000, time.Now())
	for b.Loop() {
		s.queue.inLog = 0
		writeLog(b, s)
		if err := s.wal.remove(1); err != nil {
			b.Fatal(err)
		}
		s.wal.files = s.wal.files[:0]
	}
}
