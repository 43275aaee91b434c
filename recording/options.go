package recording

import "time"

// Options say how a recording is written. The zero Options means the defaults.
type Options struct {
	// Begin is when the run began, and what all of its times are counted from: by
	// the monotonic clock too, if it has a reading of it. Default: now.
	Begin time.Time
	// Continues says that the run began in an earlier file.
	Continues bool
	// By says who writes: "weir v1.2.3".
	By string
	// Block is about how many bytes a block holds before it is compressed.
	// Default 256 KiB. Larger ones are a little smaller on disk.
	Block int
	// Flush is the longest that a frame waits for its block to be written, by the times of
	// frames: what a crash may cost. Default 10 s; negative writes each frame at once.
	Flush time.Duration
	// Restart is the time between two Begin frames, which bounds how many names a
	// reader must remember. Default 1 hour.
	Restart time.Duration
}

func (o Options) withDefaults() Options {
	if o.Begin.IsZero() {
		o.Begin = time.Now()
	}
	if o.Block <= 0 {
		o.Block = 256 << 10
	}
	o.Block = min(o.Block, maxFrame)
	if o.Flush == 0 {
		o.Flush = 10 * time.Second
	}
	if o.Restart <= 0 {
		o.Restart = time.Hour
	}
	return o
}

// ReaderOptions bound what a Reader does. The zero ReaderOptions means the
// defaults.
type ReaderOptions struct {
	// Memory is about the most bytes that a Reader remembers of a file. Default
	// 4 GiB, enough for 5,000 nodes of 100 pods each.
	Memory int64
}

func (o ReaderOptions) withDefaults() ReaderOptions {
	if o.Memory <= 0 {
		o.Memory = 4 << 30
	}
	return o
}
