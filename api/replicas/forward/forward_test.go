package forward_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/api/replicas/forward"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// here is the answer of the replica itself.
var here = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") })

// replica starts a server with forward.New(o) and a leader that answers with h.
func replica(t *testing.T, h http.Handler, o forward.Options) (url string) {
	t.Helper()
	leader := httptest.NewServer(h)
	t.Cleanup(leader.Close)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	if o.Leader == nil {
		o.Leader = func() (string, http.RoundTripper, bool) { return leader.URL, transport, false }
	}
	srv := httptest.NewServer(forward.New(o)(here))
	t.Cleanup(srv.Close)
	return srv.URL
}

func ask(t *testing.T, method, url string, header http.Header) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b), response.Header
}

func TestWhatTravels(t *testing.T) {
	type seen struct {
		Method, URI string
		Header      http.Header
	}
	var got seen
	url := replica(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = seen{r.Method, r.URL.RequestURI(), r.Header}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Add("Warning", `299 - "3 pods are missing"`)
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "no such field")
	}), forward.Options{})
	const path = "/apis/metrics.k8s.io/v1beta1/namespaces/a%2Fb/pods?labelSelector=a%3Db;c&watch=&x"
	code, body, header := ask(t, http.MethodGet, url+path, http.Header{
		"Accept": {"application/json;as=Table", "application/json"}, "Accept-Encoding": {"gzip"},
		"Authorization": {"Bearer secret"}, "Cookie": {"a=b"}, "X-Remote-User": {"root"}, "Impersonate-User": {"root"},
		"X-Forwarded-For": {"192.0.2.1"}, "User-Agent": {"kubectl"}, "Connection": {"close"},
	})
	want := seen{http.MethodGet, path, http.Header{
		"Accept": {"application/json;as=Table", "application/json"}, "Accept-Encoding": {"gzip"},
		forward.Header: {"1"},
	}}
	cmptest.Equal(t, "what the leader saw", want, got)
	if code != http.StatusBadRequest || body != "no such field" || header.Get("Warning") != `299 - "3 pods are missing"` || header.Get("Content-Type") != "application/json" {
		t.Errorf("the reader got %d %q %v", code, body, header)
	}
}

func TestWhoAnswers(t *testing.T) {
	answers := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); io.WriteString(w, "leader") })
	}
	self := forward.Options{Leader: func() (string, http.RoundTripper, bool) { return "", nil, true }}
	unknown := forward.Options{Leader: func() (string, http.RoundTripper, bool) { return "", nil, false }}
	broken := forward.Options{Leader: func() (string, http.RoundTripper, bool) { return "://", nil, false }}
	for name, test := range map[string]struct {
		leader http.Handler
		opts   forward.Options
		method string
		header http.Header
		want   string
	}{
		"a read":                        {answers(200), forward.Options{}, "GET", nil, "leader"},
		"what the leader has not":       {answers(404), forward.Options{}, "GET", nil, "here"},
		"a bad request":                 {answers(400), forward.Options{}, "GET", nil, "leader"},
		"gone":                          {answers(410), forward.Options{}, "GET", nil, "leader"},
		"the leader does not know us":   {answers(401), forward.Options{}, "GET", nil, "here"},
		"the leader does not let us":    {answers(403), forward.Options{}, "GET", nil, "here"},
		"the leader is busy":            {answers(429), forward.Options{}, "GET", nil, "here"},
		"the leader fails":              {answers(500), forward.Options{}, "GET", nil, "here"},
		"the leader is not warm":        {answers(503), forward.Options{}, "GET", nil, "here"},
		"a request that was handed on":  {answers(200), forward.Options{}, "GET", http.Header{forward.Header: {"1"}}, "here"},
		"a POST":                        {answers(200), forward.Options{}, "POST", nil, "here"},
		"the leader itself":             {answers(200), self, "GET", nil, "here"},
		"no leader":                     {answers(200), unknown, "GET", nil, "here"},
		"a leader with a broken URL":    {answers(200), broken, "GET", nil, "here"},
		"a leader that cuts off":        {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), forward.Options{}, "GET", nil, "here"},
		"a leader that does not answer": {http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), forward.Options{Timeout: 50 * time.Millisecond}, "GET", nil, "here"},
	} {
		if _, got, _ := ask(t, test.method, replica(t, test.leader, test.opts), test.header); got != test.want {
			t.Errorf("%s: answered %q, want %q", name, got, test.want)
		}
	}
}

// A leader that begins its answer in time may take longer for the rest.
func TestLongAnswer(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	url := replica(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		io.WriteString(zip, "first ")
		zip.Flush()
		w.(http.Flusher).Flush()
		close(begun)
		<-release
		io.WriteString(zip, "last")
		zip.Close()
	}), forward.Options{Timeout: 2 * time.Second})
	go func() {
		<-begun
		time.AfterFunc(2200*time.Millisecond, func() { close(release) })
	}()
	_, body, header := ask(t, http.MethodGet, url, http.Header{"Accept-Encoding": {"gzip"}})
	zip, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v in %v", err, header)
	}
	if b, err := io.ReadAll(zip); string(b) != "first last" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

// trips is a transport that counts requests and fails them.
type trips struct{ n atomic.Int64 }

func (f *trips) RoundTrip(*http.Request) (*http.Response, error) {
	f.n.Add(1)
	return nil, errors.New("no route to host")
}

// A leader that cannot be reached is tried again only after the pause. Another leader is tried at
// once.
func TestPause(t *testing.T) {
	var transport trips
	leader := "https://192.0.2.1:443"
	h := forward.New(forward.Options{
		Leader: func() (string, http.RoundTripper, bool) { return leader, &transport, false },
		Pause:  time.Hour,
	})(here)
	for i, want := range []int64{1, 1, 2, 2} {
		if i == 2 {
			leader = "https://192.0.2.2:443"
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if got := transport.n.Load(); got != want || w.Body.String() != "here" {
			t.Errorf("request %d: %q, the leader was asked %d times, want %d", i, w.Body, got, want)
		}
	}
}

// A leader that waits for an adapter or a Prometheus is asked for the numbers of nodes and pods nevertheless.
func TestSlowMetricsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			asked[r.URL.Path]++
			if strings.Contains(r.URL.Path, "/external.") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("leader"))}, nil
		})
		h := forward.New(forward.Options{Leader: func() (string, http.RoundTripper, bool) { return "https://192.0.2.1:443", transport, false }, Pause: time.Hour})(here)
		for range 2 {
			for path, want := range map[string]string{"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue": "here", "/apis/metrics.k8s.io/v1/pods": "leader"} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if got := w.Body.String(); got != want {
					t.Errorf("%s: answered %q, want %q", path, got, want)
				}
			}
		}
		if want := map[string]int{"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue": 1, "/apis/metrics.k8s.io/v1/pods": 2}; !maps.Equal(asked, want) {
			t.Errorf("the leader was asked %v, want %v", asked, want)
		}
	})
}

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// If the client goes away, the leader is not treated as failed.
func TestReaderGoesAway(t *testing.T) {
	var transport trips
	h := forward.New(forward.Options{
		Leader: func() (string, http.RoundTripper, bool) { return "https://192.0.2.1:443", &transport, false },
		Pause:  time.Hour,
	})(here)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if w.Body.Len() > 0 {
		t.Errorf("somebody who is gone was answered %q", w.Body)
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if got := transport.n.Load(); got != 2 {
		t.Errorf("the leader was asked %d times, want 2: nothing is wrong with it", got)
	}
}

// No request can make the leader look unreachable: harmful headers are not forwarded, and huge
// requests are answered by the replica itself.
func TestReaderCannotLoseTheLeader(t *testing.T) {
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "leader") }))
	defer leader.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	h := forward.New(forward.Options{
		Leader: func() (string, http.RoundTripper, bool) { return leader.URL, transport, false },
		Pause:  time.Hour,
	})(here)
	get := func(uri string, header http.Header) string {
		r := httptest.NewRequest(http.MethodGet, uri, nil)
		r.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	for name, test := range map[string]struct {
		uri    string
		header http.Header
		want   string
	}{
		"an upgrade":       {"/", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, "leader"},
		"a broken upgrade": {"/", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"\x80"}}, "leader"},
		"a giant path":     {"/" + strings.Repeat("a", 1<<20), nil, "here"},
		"a giant header":   {"/", http.Header{"Accept": {strings.Repeat("a", 1<<20)}}, "here"},
	} {
		if got := get(test.uri, test.header); got != test.want {
			t.Errorf("%s: answered %q, want %q", name, got, test.want)
		}
		if got := get("/", nil); got != "leader" {
			t.Errorf("after %s: answered %q, want %q", name, got, "leader")
		}
	}
}

// Failures that an operator should know are logged, but not for every request.
func TestLog(t *testing.T) {
	for want, code := range map[string]int{
		"the leader cannot be reached; this replica answers the request itself":                                                             0,
		"the leader refused this replica; its service account needs every right that readers have; this replica answers the request itself": http.StatusForbidden,
		"": http.StatusServiceUnavailable,
	} {
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		leader := httptest.NewServer(answers)
		transport := &http.Transport{}
		if code == 0 {
			leader.Close()
		}
		h := forward.New(forward.Options{
			Leader: func() (string, http.RoundTripper, bool) { return leader.URL, transport, false },
			Pause:  time.Nanosecond, Logger: log,
		})(here)
		for range 3 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}
		transport.CloseIdleConnections()
		leader.Close()
		if want == "" && len(lines) > 0 || want != "" && (len(lines) != 1 || !strings.Contains(lines[0], want)) {
			t.Errorf("answer %d: logged %q, want one line %q", code, lines, want)
		}
	}
}
