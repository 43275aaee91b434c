package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/test/simulator"
)

// Options configure a Server.
type Options struct {
	Fleet *simulator.Fleet // required
	// Port is the kubelets' port in the Node objects.
	Port int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Tick is the time between two checks for changes. Default 250 ms.
	Tick time.Duration
	// Bookmark is the time between two bookmarks in a watch. Default 1 m.
	Bookmark time.Duration
	// History is how many changes are kept. A watch from before them gets 410 Gone.
	// Default 100,000.
	History int
	// Autoscalers gives each Deployment a HorizontalPodAutoscaler. Default: there are none.
	Autoscalers bool
	// WithoutWatchList rejects watches that begin with the existing objects, as API
	// servers before 1.32 do. Clients then list first.
	WithoutWatchList bool
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tick == 0 {
		o.Tick = 250 * time.Millisecond
	}
	if o.Bookmark == 0 {
		o.Bookmark = time.Minute
	}
	if o.History == 0 {
		o.History = 100_000
	}
	return o
}

// Server is an http.Handler that answers as an API server. Watches get changes
// only while Run is running.
type Server struct {
	o       Options
	history *history
	leases  *leases
	hpas    []*autoscalingv2.HorizontalPodAutoscaler
}

// New returns a Server.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{o: o, history: newHistory(o.History, o.Now()), leases: newLeases()}
	if o.Autoscalers {
		s.hpas = s.autoscalers()
	}
	return s
}

// Run follows the fleet until ctx ends. Then it ends all watches.
func (s *Server) Run(ctx context.Context) error {
	defer s.history.end()
	follower := s.o.Fleet.Follow(s.history.begin)
	ticks := time.NewTicker(s.o.Tick)
	defer ticks.Stop()
	var changes []simulator.PodChange
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			now := s.o.Now()
			changes = follower.Changes(changes[:0], now)
			s.history.add(changes, now)
		}
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case discover(w, path):
	case path == "healthz" || path == "livez" || path == "readyz":
		_, _ = w.Write([]byte("ok"))
	case strings.HasPrefix(path, "apis/authentication.k8s.io/v1/") || strings.HasPrefix(path, "apis/authorization.k8s.io/v1/"):
		review(w, r)
	case strings.HasPrefix(path, "apis/coordination.k8s.io/v1/"):
		s.leases.serve(w, r, parts[3:])
	case len(parts) >= 2 && parts[0] == "api" && parts[1] == "v1":
		s.core(w, r, parts[2:])
	case len(parts) == 8 && strings.HasPrefix(path, "apis/apps/v1/namespaces/") && parts[5] == "deployments" && parts[7] == "scale":
		s.scale(w, r, types.NamespacedName{Namespace: parts[4], Name: parts[6]})
	case len(parts) == 4 && parts[0] == "apis" || len(parts) == 6 && parts[0] == "apis" && parts[3] == "namespaces":
		q := query{resource: parts[len(parts)-1], api: parts[1] + "/" + parts[2]}
		if len(parts) == 6 {
			q.namespace = parts[4]
		}
		s.others(w, r, q)
	default:
		refuse(w, r, http.StatusNotFound, "NotFound", "the simulated API server has no "+r.URL.Path)
	}
}

// core answers requests for the core group, which has nodes and pods.
func (s *Server) core(w http.ResponseWriter, r *http.Request, parts []string) {
	q := query{resource: parts[0]}
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.namespace, parts = parts[1], parts[2:]
		q.resource = parts[0]
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	switch {
	case r.Method == http.MethodPost && q.resource == "events", r.Method == http.MethodPatch && q.resource == "events":
		drop(w, r)
	case r.Method != http.MethodGet:
		refuse(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed", "the simulated API server's "+q.resource+" cannot be written")
	case q.resource != "nodes" && q.resource != "pods":
		if q.name != "" {
			refuse(w, r, http.StatusNotFound, "NotFound", q.resource+" \""+q.name+"\" not found")
			return
		}
		q.api = "v1"
		s.others(w, r, q)
	default:
		s.objects(w, r, q)
	}
}

// others answers a LIST or WATCH of a resource other than nodes and pods. Only HorizontalPodAutoscalers
// may have objects.
func (s *Server) others(w http.ResponseWriter, r *http.Request, q query) {
	q.kind = kinds[q.resource]
	if q.kind == "" {
		refuse(w, r, http.StatusNotFound, "NotFound", "the simulated API server has no "+q.resource)
		return
	}
	if r.Method != http.MethodGet {
		drop(w, r)
		return
	}
	if q.resource == autoscalersResource {
		q.hpas = s.hpas
	}
	s.objects(w, r, q)
}

// kinds are the kinds of the resources other than nodes and pods.
var kinds = map[string]string{
	"namespaces": "Namespace", "configmaps": "ConfigMap", "services": "Service", "events": "Event",
	autoscalersResource: "HorizontalPodAutoscaler", "resourcequotas": "ResourceQuota", "limitranges": "LimitRange",
}

// status has the fields of the API's Status that clients use.
type status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status"`
	Message    string   `json:"message"`
	Reason     string   `json:"reason"`
	Code       int      `json:"code"`
}

func failure(code int, reason, message string) status {
	return status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: message, Reason: reason, Code: code}
}

// refuse answers with a Status in JSON, which every client can read.
func refuse(w http.ResponseWriter, _ *http.Request, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(failure(code, reason, message)) // an error means that the client has gone
}
