package push

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/sinks/lockfile"
)

// wal is the write-ahead log: a folder with one file for each request in the queue. The file is
// removed when the receiver has the request. So the next weir sends what a killed one had not.
// It does no more: files survive the end of the process, and maybe not that of the machine,
// because nothing waits for the disk. A file that is removed within seconds is not even written
// to it.
//
// One file a request was chosen over segments with many: a full disk has room again as soon as
// one request is sent, no file is read to find its end, and what was sent is recorded once.
type wal struct {
	folder string
	suffix string // of the files: the protocol, because another one cannot send them
	lock   *os.File
	files  []uint64 // numbers of the requests that have a file, ascending
	limit  int64    // bytes of a file: a larger one would not fit into the queue
}

// The layout of a file. Its numbers are little endian:
//
//	8 bytes   walMagic
//	4 bytes   the CRC-32C of all bytes that follow
//	4 bytes   the number of items
//	8 bytes   when the first item was queued, in nanoseconds since the Unix epoch
//	n bytes   the request, compressed
const (
	walMagic = "weirwal1"
	walHead  = len(walMagic) + 4 + 4 + 8
)

// maxDamaged is how many damaged files are kept to be looked at. Their names end in damagedSuffix.
const (
	maxDamaged    = 4
	damagedSuffix = ".damaged"
)

// walBlock is what a small file takes of a disk.
const walBlock = 4096

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openWAL locks the folder and reads its requests, the oldest first. It makes the folder if there
// is none. Files that are damaged, as by a kill while they were written, or larger than limit, are
// set aside and counted.
func openWAL(folder, protocol string, limit int64) (w *wal, waiting []queuedRequest, damaged int, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, 0, err
	}
	w = &wal{folder: folder, suffix: "." + protocol, limit: limit + int64(walHead)}
	if w.lock, err = os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, nil, 0, err
	}
	if err := lockfile.Lock(w.lock); err != nil {
		return nil, nil, 0, errors.Join(fmt.Errorf("%s: %w", folder, err), w.lock.Close())
	}
	waiting, damaged, err = w.read()
	if err != nil {
		return nil, nil, 0, errors.Join(err, w.lock.Close())
	}
	return w, waiting, damaged, nil
}

func (w *wal) close() error { return w.lock.Close() }

func (w *wal) read() (waiting []queuedRequest, damaged int, err error) {
	entries, err := os.ReadDir(w.folder)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		digits, ours := strings.CutSuffix(e.Name(), w.suffix)
		number, err := strconv.ParseUint(digits, 10, 64)
		if !ours || err != nil || w.path(number) != filepath.Join(w.folder, e.Name()) {
			continue
		}
		p, err := w.readFile(number)
		if errors.As(err, new(damagedError)) {
			damaged++
			if err := w.setAside(number); err != nil {
				return nil, 0, err
			}
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		p.number = number
		waiting = append(waiting, p)
		w.files = append(w.files, number)
	}
	return waiting, damaged, nil
}

// damagedError is that a file has no whole request.
type damagedError struct{ error }

// readFile returns the request in a file.
func (w *wal) readFile(number uint64) (queuedRequest, error) {
	if info, err := os.Stat(w.path(number)); err != nil {
		return queuedRequest{}, err
	} else if info.Size() > w.limit {
		return queuedRequest{}, damagedError{fmt.Errorf("it has %d bytes", info.Size())}
	}
	data, err := os.ReadFile(w.path(number))
	if err != nil {
		return queuedRequest{}, err
	}
	p, err := parseFile(data)
	if err != nil {
		return queuedRequest{}, damagedError{err}
	}
	return p, nil
}

// setAside renames a damaged file, and removes all but the last maxDamaged of these.
func (w *wal) setAside(number uint64) error {
	if err := os.Rename(w.path(number), w.path(number)+damagedSuffix); err != nil {
		return err
	}
	all, err := filepath.Glob(filepath.Join(w.folder, "*"+w.suffix+damagedSuffix)) // sorted
	if err != nil {
		return err
	}
	for _, path := range all[:max(0, len(all)-maxDamaged)] {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// path returns the file of a request. The name begins with the request's number, in 20 digits, so
// that names are sorted as numbers.
func (w *wal) path(number uint64) string {
	return filepath.Join(w.folder, fmt.Sprintf("%020d%s", number, w.suffix))
}

// sync removes the files of requests that do not wait any more, and writes those of requests
// that have none yet. It ends at the first error. Only one goroutine may call it.
func (w *wal) sync(q *queue) error {
	var failed error
	w.files = slices.DeleteFunc(w.files, func(number uint64) bool {
		if failed != nil || q.waits(number) {
			return false
		}
		failed = w.remove(number)
		return failed == nil
	})
	for failed == nil {
		p, ok := q.firstUnlogged()
		if !ok {
			break
		}
		if err := os.WriteFile(w.path(p.number), appendFile(nil, &p), 0o600); err != nil {
			// A part of a file takes room on a full disk, and cannot be read.
			return errors.Join(err, w.remove(p.number))
		}
		w.files = append(w.files, p.number)
		q.logged(p.number)
	}
	return failed
}

// remove removes a file. It may be gone already, because somebody emptied the folder.
func (w *wal) remove(number uint64) error {
	err := os.Remove(w.path(number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func appendFile(data []byte, p *queuedRequest) []byte {
	begin := len(data)
	data = append(data, walMagic...)
	data = append(data, 0, 0, 0, 0)
	data = binary.LittleEndian.AppendUint32(data, uint32(p.items))
	data = binary.LittleEndian.AppendUint64(data, uint64(p.since.UnixNano()))
	data = append(data, p.body...)
	file := data[begin:]
	binary.LittleEndian.PutUint32(file[len(walMagic):], crc32.Checksum(file[len(walMagic)+4:], castagnoli))
	return data
}

// parseFile returns the request in a file. It uses the memory of data.
func parseFile(data []byte) (p queuedRequest, err error) {
	switch {
	case len(data) < walHead || string(data[:len(walMagic)]) != walMagic:
		return p, errors.New("this is not a request of the log")
	case binary.LittleEndian.Uint32(data[len(walMagic):]) != crc32.Checksum(data[len(walMagic)+4:], castagnoli):
		return p, errors.New("the checksum does not match")
	}
	items, since := binary.LittleEndian.Uint32(data[len(walMagic)+4:]), binary.LittleEndian.Uint64(data[len(walMagic)+8:])
	return queuedRequest{body: data[walHead:], items: int(items), since: time.Unix(0, int64(since))}, nil
}

// restore opens the write-ahead log, if there is one. A folder that cannot be used does not keep weir
// from starting: keepWAL tries again. The error is that another weir uses it.
func (s *Sender) restore() error {
	if s.o.WAL == "" {
		return nil
	}
	err := s.openWAL()
	if err == nil || errors.Is(err, lockfile.ErrLocked) {
		return err
	}
	s.walFailed(err)
	return nil
}

// openWAL opens the write-ahead log and queues the requests that the last weir had not sent.
func (s *Sender) openWAL() error {
	w, waiting, damaged, err := openWAL(s.o.WAL, s.protocol, s.o.Queue)
	if err != nil {
		return err
	}
	s.wal = w
	s.meters.dropped.Add(float64(s.queue.restore(waiting)))
	if damaged > 0 {
		s.o.Logger.Error("requests in the write-ahead log are damaged: they are lost; the last of their files are kept as *"+damagedSuffix, zap.Int("requests", damaged), zap.String("folder", s.o.WAL))
	}
	items := 0
	for i := range waiting {
		items += waiting[i].items
	}
	if items > 0 {
		s.o.Logger.Info(s.things+" of the last run wait in the write-ahead log: they are sent first", zap.Int(s.things, items), zap.Time("since", waiting[0].since))
	}
	return nil
}

// walFailed counts an error of the write-ahead log, and logs it.
func (s *Sender) walFailed(err error) {
	s.meters.walErrors.Inc()
	s.o.Logger.Warn("the write-ahead log cannot be written: "+s.things+" wait in memory only, and are lost if weir is killed; weir tries again", zap.Error(err))
}

// walRetry is the time from an error of the write-ahead log to the next try.
const walRetry = 5 * time.Second

// keepWAL keeps the write-ahead log equal to the queue until ended is closed. A disk that is full,
// slow or read-only delays only the log: requests wait in memory, and are sent from there.
func (s *Sender) keepWAL(ended <-chan struct{}) {
	if s.o.WAL == "" {
		return
	}
	defer func() {
		if s.wal != nil {
			_ = s.wal.close() // nothing was written to the lock
		}
	}()
	retry := time.NewTicker(walRetry)
	defer retry.Stop()
	for failing := s.wal == nil; ; {
		err := s.syncWAL()
		change := s.queue.change
		switch {
		case err != nil && failing:
			change = nil // retry
			s.meters.walErrors.Inc()
		case err != nil:
			change = nil
			s.walFailed(err)
		case failing:
			s.o.Logger.Info("the write-ahead log has all " + s.things + " that wait again")
		}
		failing = err != nil
		select {
		case <-change:
		case <-retry.C:
		case <-ended:
			_ = s.syncWAL() // reportWaiting counts what it cannot write
			return
		}
	}
}

// syncWAL opens the write-ahead log if it is not open, and makes it equal to the queue.
func (s *Sender) syncWAL() error {
	if s.wal == nil {
		if err := s.openWAL(); err != nil {
			return err
		}
	}
	return s.wal.sync(s.queue)
}

// reportWaiting logs, at the end, how much waits for the next weir and how much is lost.
func (s *Sender) reportWaiting() {
	_, items, _ := s.queue.state()
	lost := s.queue.unlogged()
	if lost > 0 {
		s.meters.dropped.Add(float64(lost))
		s.o.Logger.Warn(s.things+" in the queue are lost", zap.Int(s.things, lost))
	}
	if items > lost {
		s.o.Logger.Info(s.things+" wait in the write-ahead log for the next start", zap.Int(s.things, items-lost))
	}
}
