package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// Stream serves an answer without end at pattern, a path. The caller needs the right to
// that very path (nonResourceURLs), so it must not lie below /api or /apis, to which a
// cluster gives everyone the right. RequestTimeout and the bound on requests at once do
// not hold for it; it ends when the Server does, or the caller. Stream is called before
// Run.
func (s *Server) Stream(pattern string, h http.Handler) {
	s.streams[pattern] = true
	s.Handle(pattern, nil, h)
}

// endless adds streams to the requests that the library holds to be long.
func (s *Server) endless(long request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(r *http.Request, info *request.RequestInfo) bool {
		return s.streams[r.URL.Path] || long != nil && long(r, info)
	}
}
