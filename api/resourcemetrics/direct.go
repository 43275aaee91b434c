package resourcemetrics

import (
	"net/http"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/metric"
)

// directHandler answers the most frequent requests without API objects: a GET or LIST in plain
// JSON or protobuf, with at most a label selector. It appends the answer straight from the
// usageList, in the bytes that the library would write for the objects. It runs after all
// filters of the library, in place of the handlers of the group. It leaves the rest to those
// handlers: tables, metadata alone, YAML, CBOR and indented JSON; watches; all other query
// parameters; audits that record the response; and all answers other than 200.
type directHandler struct {
	storages   map[string]*storage // by resource
	serializer runtime.NegotiatedSerializer
	scope      *handlers.RequestScope // the conversions that the library knows
	json       runtime.Serializer
	protobuf   runtime.Serializer
}

func newDirectHandler(storages map[string]*storage, s runtime.NegotiatedSerializer) *directHandler {
	d := &directHandler{storages: storages, serializer: s, scope: &handlers.RequestScope{TableConvertor: storages[podKind.resource]}}
	for _, info := range s.SupportedMediaTypes() {
		switch info.MediaType {
		case runtime.ContentTypeJSON:
			d.json = info.Serializer
		case runtime.ContentTypeProtobuf:
			d.protobuf = info.Serializer
		}
	}
	return d
}

// filter answers a request, or passes it on.
func (d *directHandler) filter(req *restful.Request, resp *restful.Response, chain *restful.FilterChain) {
	r := req.Request
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || r.Method != http.MethodGet || info.Subresource != "" || auditsResponse(r) {
		chain.ProcessFilter(req, resp)
		return
	}
	encoding, mediaType := d.negotiate(r)
	if encoding == nil {
		chain.ProcessFilter(req, resp)
		return
	}
	answer, ok := d.read(r, info)
	if !ok {
		chain.ProcessFilter(req, resp)
		return
	}
	defer answer.release()
	verb, packs := metrics.MethodGet, responsewriters.ContentEncodingSupported(r, features.APIResponseCompression) == "gzip"
	if answer.list {
		verb = request.MethodList
	}
	metrics.InstrumentHandlerFunc(verb, info.APIGroup, info.APIVersion, info.Resource, "", metrics.CleanScope(info),
		metrics.APIServerComponent, false, "", func(w http.ResponseWriter, r *http.Request) {
			request.TrackSerializeResponseObjectLatency(r.Context(), func() {
				if err := sendResponse(w, mediaType, packs, encoding, answer); err != nil {
					klog.FromContext(r.Context()).V(2).Info("A response could not be sent", "path", r.URL.Path, "err", err)
				}
			})
		})(resp.ResponseWriter, r)
}

// auditsResponse reports whether the audit records the response object.
func auditsResponse(r *http.Request) bool {
	a := audit.AuditContextFrom(r.Context())
	return a != nil && !a.GetEventLevel().Less(auditinternal.LevelRequestResponse)
}

// negotiate returns the encoder and media type of the answer; nil if the library must write it.
func (d *directHandler) negotiate(r *http.Request) (encoder, string) {
	asked, info, err := negotiation.NegotiateOutputMediaType(r, d.serializer, d.scope)
	if err != nil || asked.Convert != nil {
		return nil, ""
	}
	switch info.Serializer {
	case d.json:
		return &jsonEncoder{}, info.MediaType
	case d.protobuf:
		return &protobufEncoder{}, info.MediaType
	}
	return nil, ""
}

// read returns the answer, which the caller releases. ok is false if the library must answer.
func (d *directHandler) read(r *http.Request, info *request.RequestInfo) (answer *response, ok bool) {
	stored := d.storages[info.Resource]
	c, ok := filterFromQuery(r, info)
	if stored == nil || !ok {
		return nil, false
	}
	ctx := request.WithNamespace(r.Context(), info.Namespace)
	answer = &response{groupVersion: info.APIGroup + "/" + info.APIVersion, kind: stored.kind, list: info.Verb == "list"}
	var err error
	switch info.Verb {
	case "list":
		answer.usageList, answer.created, err = stored.list(ctx, c)
	case "get":
		answer.usageList, answer.created, err = stored.get(ctx, info.Name)
	default:
		return nil, false
	}
	return answer, err == nil
}

// filterFromQuery returns the filter of r. ok is false if r has other parameters than a path
// and one label selector.
func filterFromQuery(r *http.Request, info *request.RequestInfo) (c listFilter, ok bool) {
	c.namespace = metric.Namespace(info.Namespace)
	if r.URL.RawQuery == "" {
		return c, true
	}
	query := r.URL.Query()
	selectors := query["labelSelector"]
	if info.Verb != "list" || len(query) != 1 || len(selectors) != 1 {
		return c, false
	}
	s, err := labels.Parse(selectors[0])
	if err == nil && !s.Empty() {
		c.labels = s
	}
	return c, err == nil
}
