package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/transport"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// parseSource parses the text after "--source=kubelet:".
func parseSource(t *testing.T, s string) (Options, error) {
	t.Helper()
	config, query, _ := strings.Cut(s, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return ParseOptions(config, values)
}

func TestParseOptions(t *testing.T) {
	f := func(source string, change func(o *Options)) {
		t.Helper()
		want := Options{}.withDefaults()
		change(&want)
		got, err := parseSource(t, source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			return
		}
		cmptest.Equal(t, fmt.Sprintf("%q", source), want, got, cmpopts.IgnoreFields(Options{}, "Selector"))
	}
	f("", func(*Options) {})
	f("?endpoint=summary", func(o *Options) { o.Endpoint = Summary })
	f("http://", func(o *Options) { o.Scheme = "http" })
	f("http://:10255", func(o *Options) { o.Scheme, o.Port = "http", 10255 })
	f("https://10.0.0.1:10250/", func(o *Options) { o.Targets, o.Port = []string{"10.0.0.1:10250"}, 10250 })
	f("?port=4194&address-types=Hostname,InternalIP", func(o *Options) {
		o.Port, o.AddressTypes = 4194, []string{"Hostname", "InternalIP"}
	})
	f("?port=10255&status-port", func(o *Options) { o.Port, o.StatusPort = 10255, true })
	f("?targets=a:1,b=c:2&targets=@f", func(o *Options) { o.Targets = []string{"a:1", "b=c:2", "@f"} })
	f("?insecure-tls", func(o *Options) { o.Insecure = true })
	f("?insecure-tls=false&gzip", func(o *Options) { o.Gzip = true })
	f("?gzip=false", func(*Options) {})
	f("?ca=/ca&client-cert=/c&client-key=/k&token-file=/t", func(o *Options) {
		o.CAFile, o.CertFile, o.KeyFile, o.TokenFile = "/ca", "/c", "/k", "/t"
	})
	f("?timeout=3s&max-bytes=10&max-samples=20", func(o *Options) {
		o.Timeout, o.MaxBytes, o.MaxSamples = 3*time.Second, 10, 20
	})
}

func TestParseOptionsSaysWhatToDo(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		_, err := parseSource(t, source)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got error %v, want %q", source, err, want)
		}
	}
	f("?endpiont=summary", `no option is called "endpiont": there are address-types, ca, client-cert, client-key, endpoint, gzip, insecure-tls, max-bytes, max-samples, node-selector, port, resolution, scheme, status-port, targets, timeout, token-file`)
	f("?endpoint=stats", `endpoint "stats" is unknown; use resource, summary or cadvisor`)
	f("?endpoint=summary&endpoint=resource", `option endpoint is given 2 times: give it once`)
	f("ftp://", `scheme "ftp" is unknown; use https or http`)
	f("somewhere", `kubelet:somewhere is not understood; write kubelet:SCHEME://[HOST][:PORT], for example kubelet:https://:10250, or nothing`)
	f("https://h/metrics", `kubelet:https://h/metrics is not understood; write kubelet:SCHEME://[HOST][:PORT], for example kubelet:https://:10250, or nothing`)
	f("?port=70000", `port 70000 is out of range; use 1 to 65535, or 0 for the port in the node's status`)
	f("?timeout=3", `option timeout: time: missing unit in duration "3"`)
	f("?timeout=-3s", `timeout is negative; give a positive value, or none for the default`)
	f("?insecure-tls=maybe", `option insecure-tls: "maybe" is neither true nor false`)
	f("?client-cert=c", `a client certificate needs both client-cert and client-key; give the other one too`)
	f("?ca=c&insecure-tls", `insecure-tls accepts any certificate, so ca has no use; drop one of the two`)
	f("?targets=a:b:c", `target "a:b:c" is not understood; write HOST:PORT, NAME=HOST:PORT, FIRST-LAST:PORT or @FILE`)
}

func TestParseTargets(t *testing.T) {
	f := func(entries []string, want ...Target) {
		t.Helper()
		got, err := ParseTargets(entries, 10250)
		if err != nil {
			t.Errorf("%q: %v", entries, err)
		}
		cmptest.Equal(t, fmt.Sprintf("%q", entries), want, got)
	}
	guessed := func(name metric.NodeName, address string) Target {
		return Target{Node: name, Address: address, Guessed: true}
	}
	f([]string{"h"}, guessed("h", "h:10250"))
	f([]string{"10.0.0.1:1"}, guessed("10.0.0.1", "10.0.0.1:1"))
	f([]string{"fe80::1"}, guessed("fe80::1", "[fe80::1]:10250"))
	f([]string{"[fe80::1]:7"}, guessed("fe80::1", "[fe80::1]:7"))
	f([]string{"b=h:2", "a=10.0.0.1"}, Target{Node: "a", Address: "10.0.0.1:10250"}, Target{Node: "b", Address: "h:2"})
	f([]string{"my-host-2:7"}, guessed("my-host-2", "my-host-2:7"))
	f([]string{"127.1.0.254-127.1.1.0:7"}, guessed("127.1.0.254", "127.1.0.254:7"), guessed("127.1.0.255", "127.1.0.255:7"), guessed("127.1.1.0", "127.1.1.0:7"))

	file := filepath.Join(t.TempDir(), "targets")
	if err := os.WriteFile(file, []byte("# ours\nn1=h:1\n\n  n2=h:2 # the other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f([]string{"@" + file}, Target{Node: "n1", Address: "h:1"}, Target{Node: "n2", Address: "h:2"})
}

func TestParseTargetsRefuses(t *testing.T) {
	f := func(want string, entries ...string) {
		t.Helper()
		if got, err := ParseTargets(entries, 10250); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v and error %v, want %q", entries, got, err, want)
		}
	}
	f("is not understood", "=h:1")
	f("is not understood", "n=")
	f("is not understood", "h:0")
	f("has one name for a range", "n=10.0.0.1-10.0.0.2:1")
	f("give the lower address first", "10.0.0.2-10.0.0.1:1")
	f("at most 65536 addresses", "10.0.0.0-10.9.0.0:1")
	f("two targets have the name h; give each a name", "h:1", "h:2")
	f("open targets", "@/nowhere")
}

func TestTargetsOfFacts(t *testing.T) {
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Nodes: []*cluster.Node{
		{Name: "n2", KubeletPort: 10249, Labels: map[string]string{"pool": "a"}, Addresses: []cluster.NodeAddress{{Type: "Hostname", Address: "host2"}, {Type: "InternalIP", Address: "10.0.0.2"}}},
		{Name: "n1", Labels: map[string]string{"pool": "a"}, Addresses: []cluster.NodeAddress{{Type: "Hostname", Address: "host1"}}},
		{Name: "n3", Labels: map[string]string{"pool": "a"}, Addresses: []cluster.NodeAddress{{Type: "Other", Address: "x"}}},
		{Name: "n4", Labels: map[string]string{"pool": "b"}, Addresses: []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.4"}}},
	}})
	targets := func(source string) []Target {
		t.Helper()
		opts, err := parseSource(t, source)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		return s.Targets(facts)
	}
	got := targets("?node-selector=pool+in+(a)")
	want := []Target{{Node: "n1", Address: "host1:10250"}, {Node: "n2", Address: "10.0.0.2:10249"}, {Node: "n3"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Target{}, "Err")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var read *metric.ReadError
	if err := got[2].Err; !errors.As(err, &read) || read.Reason != metric.NodeNoAddress {
		t.Errorf("n3: got error %v, want NodeNoAddress", err)
	}
	got = targets("?node-selector=pool!=a&port=1")
	if diff := cmp.Diff([]Target{{Node: "n4", Address: "10.0.0.4:1"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = targets("?port=1&status-port&node-selector=pool=a")
	want = []Target{{Node: "n1", Address: "host1:1"}, {Node: "n2", Address: "10.0.0.2:10249"}, {Node: "n3"}}
	cmptest.Equal(t, "the port in the status goes first, and port stands in for it", want, got, cmpopts.IgnoreFields(Target{}, "Err"))
	got = targets("?address-types=Hostname")
	if len(got) != 4 || got[1].Address != "host2:10249" {
		t.Errorf("got %v, want four targets, n2 by its host name", got)
	}
	got = targets("?targets=n9=h:1")
	cmptest.Equal(t, "a static list replaces the nodes", []Target{{Node: "n9", Address: "h:1"}}, got)
}

// TestTargetsStay checks that Targets returns the same slice while the nodes do not change, even if
// pods do.
func TestTargetsStay(t *testing.T) {
	s := newScraper(t, Options{})
	node := &cluster.Node{Name: "n1", Addresses: []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}}}
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Nodes: []*cluster.Node{node}})
	first := s.Targets(facts)
	facts = facts.With(cluster.FactsChange{Pods: []*cluster.Pod{{PodRef: metric.PodRef{Namespace: "a", Name: "p"}, Node: "n1"}}})
	if second := s.Targets(facts); &second[0] != &first[0] {
		t.Error("a pod has changed, and the targets were made again")
	}
	moved := *node
	moved.Addresses = []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.2"}}
	facts = facts.With(cluster.FactsChange{Nodes: []*cluster.Node{&moved}})
	if got := s.Targets(facts)[0].Address; got != "10.0.0.2:10250" || first[0].Address != "10.0.0.1:10250" {
		t.Errorf("the node has moved: got %s, and %s in the slice from before", got, first[0].Address)
	}
}

func TestInClusterDefaults(t *testing.T) {
	here := func(string) bool { return true }
	nowhere := func(string) bool { return false }
	f := func(o Options, exists func(string) bool, token, ca string) {
		t.Helper()
		got := o.withDefaults().withServiceAccount(exists)
		if got.TokenFile != token || got.CAFile != ca {
			t.Errorf("%+v: got token %q and CA %q, want %q and %q", o, got.TokenFile, got.CAFile, token, ca)
		}
	}
	f(Options{}, here, inClusterToken, inClusterCA)
	f(Options{}, nowhere, "", "")
	f(Options{CertFile: "c", KeyFile: "k"}, here, "", inClusterCA)
	f(Options{TokenFile: "t", CAFile: "a"}, here, "t", "a")
	f(Options{Insecure: true}, here, inClusterToken, "")
	f(Options{Scheme: "http"}, here, "", "")
	f(Options{Identity: &transport.Config{}}, here, "", "")
	f(Options{Targets: []string{"10.0.0.1"}}, here, "", inClusterCA) // any address can be in a list
	f(Options{Targets: []string{"10.0.0.1"}, TokenFile: "t"}, here, "t", inClusterCA)
	f(Options{Token: func(context.Context) (string, error) { return "", nil }}, here, "", inClusterCA)
}

func TestResourcePath(t *testing.T) {
	f := func(annotation, want, doubt string) {
		t.Helper()
		got, err := resourcePath(&cluster.Node{Annotations: map[string]string{cluster.PathAnnotation: annotation}})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != want || text != doubt {
			t.Errorf("%q: got path %q and doubt %q, want %q and %q", annotation, got, text, want, doubt)
		}
	}
	noPath := func(value string) string {
		return "annotation metrics.k8s.io/resource-metrics-path=" + strconv.Quote(value) + " is ignored: it is not a path; write a path such as /metrics/resource"
	}
	f("", "", "")
	f("/metrics/node", "/metrics/node", "")
	f("metrics/node", "/metrics/node", "")
	f("/a/../b", "/a/../b", "")
	f("/a?b=c", "", noPath("/a?b=c"))
	f("/a#b", "", noPath("/a#b"))
	f("/a b", "", noPath("/a b"))
	f("/a\r\nHost: b", "", noPath("/a\r\nHost: b"))
	f("https://elsewhere/metrics", "", noPath("https://elsewhere/metrics"))
	f("/"+strings.Repeat("a", 1024), "", "annotation metrics.k8s.io/resource-metrics-path is ignored: it is 1025 bytes long, and a path has at most 1024")
}

// FuzzResourcePath checks that the request goes only to the node's own kubelet, for any value of
// the node's annotation.
func FuzzResourcePath(f *testing.F) {
	for _, s := range []string{"/metrics/node", "metrics", "//elsewhere/x", "/%2e%2e/x", "/%zz", "?a", "/ä"} {
		f.Add(s)
	}
	s, err := New(Options{Insecure: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		target := targetOf(&cluster.Node{
			Name: "n1", Addresses: []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}},
			Annotations: map[string]string{cluster.PathAnnotation: annotation},
		}, &s.opts)
		if target.PathError != nil && target.Path != "" {
			t.Fatalf("%q: path %q is used though %v", annotation, target.Path, target.PathError)
		}
		sent := s.Open(target).currentEndpoint().url.String()
		u, err := url.Parse(sent)
		if err != nil {
			t.Fatalf("%q: URL %q does not parse: %v", annotation, sent, err)
		}
		if u.Scheme != "https" || u.Host != "10.0.0.1:10250" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q: URL %q leads elsewhere", annotation, sent)
		}
	})
}

func FuzzParseTargets(f *testing.F) {
	for _, s := range []string{"n=h:1", "10.0.0.1-10.0.0.9:2", "[::1]:3", "a-b:4", "=", "::-::f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		targets, err := parseTarget(entry, 10250)
		if err != nil {
			return
		}
		for _, target := range targets {
			if target.Node == "" {
				t.Fatalf("%q: a target without a name", entry)
			}
			if _, _, err := splitHostPort(target.Address, 1); err != nil {
				t.Fatalf("%q: address %q does not parse: %v", entry, target.Address, err)
			}
		}
	})
}

func TestParseCAdvisor(t *testing.T) {
	o, err := ParseCAdvisor("", url.Values{"targets": {"web=10.0.0.1,db=10.0.0.2:9090"}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Endpoint != Standalone || o.Scheme != "http" || o.Port != StandalonePort {
		t.Errorf("endpoint %s, scheme %s, port %d", o.Endpoint, o.Scheme, o.Port)
	}
	targets, err := ParseTargets(o.Targets, o.port())
	if err != nil || len(targets) != 2 || targets[1].Address != "10.0.0.1:8080" || targets[0].Address != "10.0.0.2:9090" {
		t.Errorf("targets %+v, %v", targets, err)
	}
	n := &cluster.Node{Name: "n1", KubeletPort: 10250, Addresses: []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.3"}}}
	if got := targetOf(n, &o); got.Address != "10.0.0.3:8080" {
		t.Errorf("on a node of a cluster it is read at %s", got.Address)
	}
	if o, err = ParseCAdvisor("https://10.0.0.4", nil); err != nil || o.Scheme != "https" || !slices.Equal(o.Targets, []string{"10.0.0.4"}) {
		t.Errorf("one of them: %+v, %v", o, err)
	}
	if got := o.withServiceAccount(func(string) bool { return true }); got.TokenFile != "" || got.CAFile != "" {
		t.Errorf("a cAdvisor gets the service account: %+v", got)
	}
	for config, want := range map[string]string{
		"?endpoint=summary": `no option is called "endpoint"`,
		"10.0.0.1:8080":     "write cadvisor:SCHEME://[HOST][:PORT]",
	} {
		config, query, _ := strings.Cut(config, "?")
		values, _ := url.ParseQuery(query)
		if _, err := ParseCAdvisor(config, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cadvisor:%s?%s: got %v, want %s", config, query, err, want)
		}
	}
	if _, err := ParseOptions("", url.Values{"endpoint": {"standalone"}}); err == nil || !strings.Contains(err.Error(), "--source=cadvisor:") {
		t.Errorf("a kubelet with the endpoint of a cAdvisor: %v", err)
	}
}
