package execute

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

func TestOptions(t *testing.T) {
	client := fake.NewClientset()
	f := func(o Options, want string) {
		t.Helper()
		_, err := New(o)
		switch {
		case err == nil && want != "":
			t.Errorf("New(%+v): got no error, want %q", o, want)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("New(%+v): got %q, want %q in it", o, err, want)
		}
	}
	f(Options{}, "")
	f(Options{Mode: Kill, Client: client, Node: "n", Self: "u"}, "")
	f(Options{Mode: Evict, Client: client, Node: "n", NoPod: true}, "")
	f(Options{Mode: Evict, Client: client, Node: "n"}, "metadata.uid")
	f(Options{Mode: Evict, Client: client, Self: "u"}, "spec.nodeName")
	f(Options{Mode: Kill, Node: "n", Self: "u"}, "a client is needed")
	f(Options{Mode: "Kill"}, "must be one of observe, evict, kill")
}

func TestDefaultsAreTheKubelets(t *testing.T) {
	o := Options{}.withDefaults()
	if o.CleanupTimeout != 30*time.Second || o.CleanupPoll != time.Second {
		t.Errorf("got %v, %v; want 30s, 1s", o.CleanupTimeout, o.CleanupPoll)
	}
}
