package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/lockfile"
)

// retry is the time from an error to the next try.
const retry = time.Minute

// Sink writes a recording. Its methods may be called by several goroutines: rounds come from
// the manager, scale targets from the autoscaler's controller.
type Sink struct {
	o     Options
	begin time.Time

	mu     sync.Mutex // guards the fields below
	file   *os.File
	writer *recording.Writer // nil while writing fails
	size   int64             // of file, without the bytes that writer wrote
	since  time.Time         // of the first round in file
	failed time.Time         // when writing failed; zero if it did not
	// missing is the time since which records were not written; zero if none are missing.
	missing time.Time
	ran     bool               // this run has written something
	gone    []metric.SourceKey // sources that were gone while writing failed
	damage  error              // of the existing file, which was set aside
}

// Open opens the file. An existing recording is continued after its last complete block. A
// damaged one is set aside like a full file, so that weir starts after a power failure. Only
// the user may read the file, because it has the names of all objects in a cluster. The Sink is also
// returned with an error, as of a read-only disk: Record tries again after a minute.
func Open(o Options) (*Sink, error) {
	s := &Sink{o: o.withDefaults(), begin: time.Now()}
	err := s.open()
	if err != nil {
		s.failed, s.missing = s.begin, s.begin
	}
	return s, err
}

// SetAside returns the damage of the existing file, which was set aside; nil if there was none.
func (s *Sink) SetAside() error { return s.damage }

func (s *Sink) open() error {
	f, err := os.OpenFile(s.o.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the recording: %w", err)
	}
	if err := lockfile.Lock(f); err != nil {
		return errors.Join(fmt.Errorf("open the recording: %s: %w", s.o.Path, err), f.Close())
	}
	size, since, err := endOf(f)
	if errors.As(err, new(*recording.DamagedError)) {
		s.damage = err
		if err := errors.Join(f.Close(), s.shift()); err != nil {
			return fmt.Errorf("set a damaged recording aside: %w", err)
		}
		return s.open()
	}
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("continue %s: %w", s.o.Path, err), f.Close())
	}
	w, err := recording.NewWriter(f, recording.Options{Begin: s.begin, Continues: s.ran, Missing: s.missing, By: s.o.By, Flush: s.o.Flush})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.file, s.writer, s.size, s.since = f, w, size, since
	return nil
}

// endOf returns the end of the last complete block of a recording, and the time of its first
// frame. An empty file is a recording without blocks.
func endOf(f *os.File) (size int64, since time.Time, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, since, err
	}
	if !info.Mode().IsRegular() {
		return 0, since, errors.New("this is not a regular file: name another")
	}
	r, err := recording.NewReader(f)
	var none *recording.NoRecordingError
	var cut *recording.TruncatedError
	switch {
	case errors.As(err, &none):
		return 0, since, fmt.Errorf("%w: name another file, or remove this one", err)
	case errors.As(err, &cut):
		return 0, since, nil
	case err != nil:
		return 0, since, err
	}
	defer r.Close()
	first, err := r.Next()
	if err == nil {
		since = first.Now
		err = r.Skip()
	}
	switch {
	case errors.Is(err, io.EOF), errors.As(err, &cut):
		return r.Offset(), since, nil
	default:
		return 0, since, err
	}
}

// Record writes a round.
func (s *Sink) Record(_ context.Context, b *metric.Batch, facts *cluster.Facts, now time.Time) error {
	return s.write(now, func() error { return s.writer.Round(b, facts, now) })
}

// Forget writes that a source is gone.
func (s *Sink) Forget(name string, node metric.NodeName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == nil {
		s.gone = append(s.gone, metric.SourceKey{Source: name, Node: node})
		return
	}
	// The next round has the same error.
	_ = s.writer.Gone(name, node)
}

// Scale writes the state of a scale target.
func (s *Sink) Scale(t *recording.ScaleTarget, now time.Time) error {
	return s.write(now, func() error { return s.writer.Scale(t, now) })
}

// write calls do. If the file is full, it begins the next one before. After an error it writes
// nothing for a minute. Then the file is continued after its last complete block.
func (s *Sink) write(now time.Time, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == nil {
		if now.Sub(s.failed) < retry {
			return fmt.Errorf("writing the recording failed at %s; the next try is after %v", s.failed.UTC().Format(time.RFC3339), retry)
		}
		if err := s.open(); err != nil {
			s.failed = now
			return err
		}
	}
	if s.full(now) {
		if err := s.rotate(); err != nil {
			s.abandon(now)
			return fmt.Errorf("start the next file: %w", err)
		}
	}
	if s.since.IsZero() {
		s.since = now
	}
	s.ran = true
	err := errors.Join(s.catchUp(now), do())
	if err != nil && s.writer.Flush() != nil { // the error is not only that the record is too large
		s.abandon(now)
	}
	return err
}

// catchUp writes the sources that were gone while writing failed.
func (s *Sink) catchUp(now time.Time) error {
	if len(s.gone) == 0 {
		return nil
	}
	err := s.writer.Facts(nil, now) // no facts, but a Begin if one is due
	for _, g := range s.gone {
		err = errors.Join(err, s.writer.Gone(g.Source, g.Node))
	}
	s.gone = nil
	return err
}

// full reports whether the file has reached a limit.
func (s *Sink) full(now time.Time) bool {
	if s.since.IsZero() {
		return false
	}
	return s.o.MaxSize > 0 && s.size+s.writer.Size() >= s.o.MaxSize || s.o.MaxAge > 0 && now.Sub(s.since) >= s.o.MaxAge
}

// rotate closes the file and opens the next.
func (s *Sink) rotate() error {
	if err := s.close(); err != nil {
		return err
	}
	if err := s.shift(); err != nil {
		return err
	}
	return s.open()
}

// shift renames each full file to the next number.
func (s *Sink) shift() error {
	if s.o.Keep < 0 {
		return os.Remove(s.o.Path)
	}
	for n := s.o.Keep; n > 0; n-- {
		from := s.o.Path
		if n > 1 {
			from = fmt.Sprintf("%s.%d", s.o.Path, n-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", s.o.Path, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// abandon closes a file that cannot be written.
func (s *Sink) abandon(now time.Time) {
	_ = s.close() // it returns the same error
	s.failed = now
	if s.missing.IsZero() {
		s.missing = now
	}
}

func (s *Sink) close() error {
	if s.writer == nil {
		return nil
	}
	err := errors.Join(s.writer.Close(), s.file.Close())
	s.missing = s.writer.Missing()
	s.writer, s.file = nil, nil
	return err
}

// Close writes the remaining records and closes the file.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.close(); err != nil {
		return fmt.Errorf("close the recording: %w", err)
	}
	return nil
}
