package recordingcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
)

// Open opens the recording at path. The caller closes both results.
func Open(path string) (*os.File, *recording.Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the recording: %w", err)
	}
	r, err := recording.NewReader(file)
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
		var none *recording.NoRecordingError
		if errors.As(err, &none) {
			err = cli.Hintf(err, "A recording is what weir server --sink=recording:FILE writes.")
		}
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, r, nil
}

// ShowRead returns a function that shows how much of a recording was read.
func ShowRead(line *cli.Progress, file *os.File, r *recording.Reader) func() {
	var size int64
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	what := "reading " + file.Name()
	return func() { line.Set(what, r.Offset(), size) }
}

// FirstTime returns the time of the first frame of the recording at path.
func FirstTime(path string) (time.Time, error) {
	file, r, err := Open(path)
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	defer r.Close()
	f, err := r.Next()
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
