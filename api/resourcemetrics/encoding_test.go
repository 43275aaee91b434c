package resourcemetrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/metrics/pkg/apis/metrics"

	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// FuzzString compares quoted strings with encoding/json.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "web-0", `"`, `\`, "<>&", "\x00\x1f\x20\x7e\x7f", "é", "\u2028", "\xff", "a\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString([]byte("x"), s); string(got) != "x"+string(want) {
			t.Errorf("got %s, want x%s", got, want)
		}
	})
}

// FuzzEncoding compares the direct encoding with the library's for the same objects, in every
// version and format, as a list and as one object.
func FuzzEncoding(f *testing.F) {
	f.Add("shop", "web-0", "app", "web", "main", int64(12_345_678), int64(100_000_000), int64(1_767_355_195_000_000_000), int64(20_000_000_000), uint8(2))
	f.Add("", "n\u2028", "<b>", "\"", "", int64(0), int64(0), int64(0), int64(0), uint8(0))
	f.Add("a", "b", "", "", "c", int64(1000), int64(1<<62), int64(-1), int64(-1500), uint8(200))
	f.Fuzz(func(t *testing.T, namespace, name, key, value, container string, cpu, memory, end, window int64, n uint8) {
		if cpu < 0 || memory < 0 {
			t.Skip("a usage is never negative")
		}
		for _, s := range []string{namespace, name, key, value, container} {
			if !utf8.ValidString(s) {
				t.Skip("the library's protobuf refuses such text")
			}
		}
		compareEncodings(t, namespace, name, key, value, container, cpu, memory, end, window, n)
	})
}

// TestRandomEncodings does what FuzzEncoding does, with random input.
func TestRandomEncodings(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 5207))
	word := func() string {
		letters := []rune("abcz-09.\"\\<>&\n\x00é世🙂\u2028")
		return strings.Repeat(string(letters[r.IntN(len(letters))]), r.IntN(3)*r.IntN(70)) + string(letters[r.IntN(len(letters))])
	}
	number := func() int64 { return r.Int64() >> r.IntN(64) }
	signed := func() int64 { return number() * int64(1-2*r.IntN(2)) }
	for range 500 {
		compareEncodings(t, word(), word(), word(), word(), word(), number(), number(), signed(), signed(), uint8(r.IntN(256)))
	}
}

// compareEncodings compares the two encodings of a few nodes and of a few pods.
func compareEncodings(t *testing.T, namespace, name, key, value, container string, cpu, memory, end, window int64, n uint8) {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	formats := map[string]runtime.Serializer{}
	for _, info := range codecs.SupportedMediaTypes() {
		formats[info.MediaType] = info.Serializer
	}
	over := metric.Window{End: end, Length: time.Duration(window)}
	labels := newLabelSet(map[string]string{key: value, "app": name}, "")
	usage := func(i uint8) resourceusage.Usage {
		return resourceusage.Usage{Name: fmt.Sprint(container, i), CPU: cpu >> i, Memory: memory >> i, Swap: memory>>(2*i+1) - int64(i%2)} // -1 now and then
	}
	for _, kind := range []objectKind{nodeKind, podKind} {
		r := &usageList{}
		for i := range max(n%4, 1) {
			if !kind.isPod {
				r.addNode(newObjectMeta("", fmt.Sprint(name, i), labels), usage(i), over, n%2 == 1)
				continue
			}
			u := resourceusage.PodUsage{Window: over}
			for j := range n % 7 {
				u.Containers = append(u.Containers, usage(j))
			}
			r.addPod(&u, r.addMeta(newObjectMeta(metric.Namespace(namespace), fmt.Sprint(name, i), labels)), n%2 == 1)
		}
		created := time.Unix(end/1e9, 0)
		for _, list := range []bool{true, false} {
			object := libraryObject(r, kind, list, created)
			if !list {
				r.items = r.items[:1]
			}
			for _, version := range versions {
				answer := &response{groupVersion: version.String(), kind: kind, list: list, usageList: r, created: created}
				for mediaType, e := range map[string]encoder{runtime.ContentTypeJSON: &jsonEncoder{}, runtime.ContentTypeProtobuf: &protobufEncoder{}} {
					want, err := runtime.Encode(codecs.EncoderForVersion(formats[mediaType], version), object)
					if err != nil {
						t.Fatal(err)
					}
					to := httptest.NewRecorder()
					if err := sendResponse(to, mediaType, false, e, answer); err != nil {
						t.Fatal(err)
					}
					if got := to.Body.Bytes(); !bytes.Equal(got, want) {
						t.Fatalf("%s of %s %v:\ngot  %q\nwant %q", mediaType, answer.name(), version, got, want)
					}
				}
			}
		}
	}
}

// libraryObject returns what storage returns for r: a list, or its first object.
func libraryObject(r *usageList, kind objectKind, list bool, created time.Time) runtime.Object {
	switch {
	case kind.isPod && list:
		return &metrics.PodMetricsList{Items: r.podObjects(created)}
	case kind.isPod:
		return &r.podObjects(created)[0]
	case list:
		return &metrics.NodeMetricsList{Items: r.nodeObjects(created)}
	default:
		return &r.nodeObjects(created)[0]
	}
}

// If the audit records the response, the library answers, because it has the object.
func TestWholeAudit(t *testing.T) {
	for level, want := range map[auditinternal.Level]bool{
		"": false, auditinternal.LevelNone: false, auditinternal.LevelMetadata: false, auditinternal.LevelRequest: false,
		auditinternal.LevelRequestResponse: true,
	} {
		ctx := audit.WithAuditContext(t.Context())
		if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: level}, nil); err != nil {
			t.Fatal(err)
		}
		if got := auditsResponse(httptest.NewRequestWithContext(ctx, "GET", "/", nil)); got != want {
			t.Errorf("level %q: got %v, want %v", level, got, want)
		}
	}
	if auditsResponse(httptest.NewRequest("GET", "/", nil)) {
		t.Error("nothing audits, yet the answer is wanted")
	}
}
