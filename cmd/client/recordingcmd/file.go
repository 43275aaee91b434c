package recordingcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
)

// file is a recording that a command reads.
type file struct {
	*recording.Reader
	disk *os.File
}

// openFile opens the recording at path. The caller closes it.
func openFile(path string) (*file, error) {
	disk, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	r, err := recording.NewReader(disk)
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
		var none *recording.NoRecordingError
		if errors.As(err, &none) {
			err = cli.Hintf(err, "A recording is what weir server --sink=recording:FILE writes.")
		}
		return nil, errors.Join(err, disk.Close())
	}
	return &file{r, disk}, nil
}

// Close closes the recording, which was only read.
func (f *file) Close() {
	f.Reader.Close()
	f.disk.Close()
}

// frames yields the frames up to the end of the recording, or up to the first error of Next or of ctx,
// which it yields. line shows how much was read; it may be nil.
func (f *file) frames(ctx context.Context, line *cli.Progress) iter.Seq2[recording.Frame, error] {
	var size int64
	if info, err := f.disk.Stat(); err == nil {
		size = info.Size()
	}
	task := "reading " + f.disk.Name()
	return func(yield func(recording.Frame, error) bool) {
		for ctx.Err() == nil {
			line.Set(task, f.Offset(), size)
			frame, err := f.Next()
			if errors.Is(err, io.EOF) || !yield(frame, err) || err != nil {
				return
			}
		}
		yield(recording.Frame{}, ctx.Err())
	}
}

// endsEarly reports whether err means that a recording is truncated or damaged. All frames before that
// are whole.
func endsEarly(err error) bool {
	return errors.As(err, new(*recording.TruncatedError)) || errors.As(err, new(*recording.DamagedError))
}

// FirstTime returns the time of the first frame of the recording at path.
func FirstTime(path string) (time.Time, error) {
	file, err := openFile(path)
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	f, err := file.Next()
	if errors.Is(err, io.EOF) {
		err = errors.New("the recording holds nothing yet")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read %s: %w", path, err)
	}
	return f.Now, nil
}

// Time is a time in a recording: a time of day, or a duration after the beginning.
type Time struct {
	at    time.Time
	after time.Duration
	// Given is false if the text was empty.
	Given bool
}

// ParseTime parses a Time. flag is the name of the flag, for the error.
func ParseTime(flag, text string) (Time, error) {
	if text == "" {
		return Time{}, nil
	}
	if d, ok := cli.ParseDays(text); ok {
		return Time{after: d, Given: true}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return Time{after: d, Given: true}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Time{}, cli.Usage(fmt.Errorf("%s cannot be %q: write 2026-11-02T15:04:05Z, or a duration from the beginning such as 90m", flag, text))
	}
	return Time{at: t, Given: true}, nil
}

// Since returns the absolute time in a recording that begins at first.
func (t Time) Since(first time.Time) time.Time {
	if t.at.IsZero() {
		return first.Add(t.after)
	}
	return t.at
}
