package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// watcher is one watch that is running.
type watcher struct {
	server *Server
	w      http.ResponseWriter
	q      query
	e      encoding
	buffer []byte
	one    []byte
}

// watch sends changes until the request ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q query, e encoding) {
	values := r.URL.Query()
	asked := values.Get("resourceVersion")
	initial, _ := strconv.ParseBool(values.Get("sendInitialEvents"))
	bookmarks, _ := strconv.ParseBool(values.Get("allowWatchBookmarks"))
	if initial && s.o.WithoutWatchList {
		refuse(w, r, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		return
	}
	var from int64
	if asked != "" && asked != "0" {
		var err error
		if from, err = strconv.ParseInt(asked, 10, 64); err != nil {
			refuse(w, r, http.StatusBadRequest, "BadRequest", "resourceVersion "+strconv.Quote(asked)+" is not one of this server's")
			return
		}
	}
	e.form.Typed = true
	t := &watcher{server: s, w: w, q: q, e: e}
	if initial || from == 0 {
		from = 0
	} else if _, _, _, gone, _ := s.history.after(from); gone {
		refuse(w, r, http.StatusGone, "Expired", "too old resource version: "+asked)
		return
	}
	w.Header().Set("Content-Type", e.contentType(true))
	w.WriteHeader(http.StatusOK)
	if from == 0 {
		from = t.begin(initial && bookmarks)
	}
	t.flush()
	t.follow(r, from, bookmarks)
}

// begin sends all objects, and returns the time of their state.
func (t *watcher) begin(end bool) int64 {
	now := t.server.o.Now()
	t.q.each(t.server.o.Fleet, now, func(o object) bool {
		t.one = t.e.object(t.one[:0], o, o.version(now), now)
		t.buffer = t.e.event(t.buffer, "ADDED", t.one)
		return len(t.buffer) < flushAt || t.write()
	})
	if end {
		t.buffer = t.e.bookmark(t.buffer, now.UnixNano(), true)
	}
	return now.UnixNano()
}

// follow sends the changes after from.
func (t *watcher) follow(r *http.Request, from int64, bookmarks bool) {
	timeout := time.Duration(1<<63 - 1)
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil && seconds > 0 {
		timeout = time.Duration(seconds) * time.Second
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	ticks := time.NewTicker(t.server.o.Bookmark)
	defer ticks.Stop()
	for {
		changes, until, more, gone, ended := t.server.history.after(from)
		if gone {
			t.expired()
			return
		}
		for i := range changes {
			if t.send(&changes[i]); len(t.buffer) >= flushAt && !t.write() {
				return
			}
		}
		from = until
		if len(t.buffer) > 0 && !t.flush() || ended {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-more:
		case <-ticks.C:
			if bookmarks {
				t.buffer = t.e.bookmark(t.buffer, from, false)
			}
		}
	}
}

// send writes the event of a change, if this watch selects the object.
func (t *watcher) send(c *simulator.PodChange) {
	o := object{node: c.Node, pod: c.Pod}
	if !t.q.matches(o) {
		return
	}
	at := time.Unix(0, c.At)
	if c.Kind == simulator.Deleted {
		at = time.Unix(0, c.At-1) // as it was just before the deletion
	}
	t.one = t.e.object(t.one[:0], o, c.At, at)
	t.buffer = t.e.event(t.buffer, c.Kind.String(), t.one)
}

// expired sends 410 Gone to a watch that is older than the history. The client
// must start again.
func (t *watcher) expired() {
	s := failure(http.StatusGone, "Expired", "too old resource version: the watch has fallen behind")
	if t.e.form.Protobuf {
		// A Status: status 2, message 3, reason 4, code 6.
		raw := appendText(appendText(appendText(nil, 2, s.Status), 3, s.Message), 4, s.Reason)
		raw = append(raw, 6<<3, 0x80|http.StatusGone&0x7f, http.StatusGone>>7)
		e := t.e
		e.api, e.kind = "v1", "Status"
		t.buffer = e.event(t.buffer, "ERROR", raw)
	} else {
		object, _ := json.Marshal(s) // strings and numbers
		t.buffer = t.e.event(t.buffer, "ERROR", object)
	}
	t.flush()
}

func (t *watcher) write() bool {
	_, err := t.w.Write(t.buffer)
	t.buffer = t.buffer[:0]
	return err == nil
}

func (t *watcher) flush() bool {
	ok := t.write()
	return http.NewResponseController(t.w).Flush() == nil && ok
}
