package resourcemetrics_test

import (
	"errors"
	"math"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestListPods(t *testing.T) {
	c, _ := client(t, serve(t, village(t).options()), "")
	for name, tc := range map[string]struct {
		namespace string
		options   metav1.ListOptions
		want      []string
	}{
		"all":                       {want: []string{"kube-system/agent", "shop/api", "shop/web-0"}},
		"a namespace":               {namespace: "shop", want: []string{"shop/api", "shop/web-0"}},
		"an unknown namespace":      {namespace: "nowhere"},
		"a label":                   {options: metav1.ListOptions{LabelSelector: "app=web"}, want: []string{"shop/web-0"}},
		"not a label":               {options: metav1.ListOptions{LabelSelector: "app!=web"}, want: []string{"kube-system/agent", "shop/api"}},
		"one of labels":             {namespace: "shop", options: metav1.ListOptions{LabelSelector: "app in (web,api),tier!=front"}, want: []string{"shop/api"}},
		"the field name":            {options: metav1.ListOptions{FieldSelector: "metadata.name=api"}, want: []string{"shop/api"}},
		"the field name, one space": {namespace: "shop", options: metav1.ListOptions{FieldSelector: "metadata.name=api"}, want: []string{"shop/api"}},
		"not a name":                {options: metav1.ListOptions{FieldSelector: "metadata.name!=api"}, want: []string{"kube-system/agent", "shop/web-0"}},
		"the field namespace":       {options: metav1.ListOptions{FieldSelector: "metadata.namespace=kube-system"}, want: []string{"kube-system/agent"}},
		"not a namespace":           {options: metav1.ListOptions{FieldSelector: "metadata.namespace!=kube-system"}, want: []string{"shop/api", "shop/web-0"}},
		"another namespace":         {namespace: "shop", options: metav1.ListOptions{FieldSelector: "metadata.namespace=kube-system"}},
		"fields and labels":         {options: metav1.ListOptions{FieldSelector: "metadata.name=web-0", LabelSelector: "app=web"}, want: []string{"shop/web-0"}},
		"fields against labels":     {options: metav1.ListOptions{FieldSelector: "metadata.name=web-0", LabelSelector: "app=api"}},
		"limit is ignored":          {options: metav1.ListOptions{Limit: 1}, want: []string{"kube-system/agent", "shop/api", "shop/web-0"}},
		"any resource version":      {options: metav1.ListOptions{ResourceVersion: "0"}, want: []string{"kube-system/agent", "shop/api", "shop/web-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := c.MetricsV1beta1().PodMetricses(tc.namespace).List(t.Context(), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range list.Items {
				got = append(got, item.Namespace+"/"+item.Name)
			}
			cmptest.Equal(t, "pods", tc.want, got)
			if list.Continue != "" {
				t.Errorf("got a token %q: nothing could be done with it", list.Continue)
			}
		})
	}
}

func TestListNodes(t *testing.T) {
	w := village(t)
	b := batch("n2")
	measured(b, nodeEntity("n2"), 0, 15e9, 1e9, 1<<30)
	w.write(t, b)
	c, _ := client(t, serve(t, w.options()), "")
	for name, tc := range map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"all":     {want: []string{"n1", "n2"}},
		"a label": {options: metav1.ListOptions{LabelSelector: "zone=b"}, want: []string{"n2"}},
		"a name":  {options: metav1.ListOptions{FieldSelector: "metadata.name=n1"}, want: []string{"n1"}},
		"none":    {options: metav1.ListOptions{LabelSelector: "zone=c"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range list.Items {
				got = append(got, item.Name)
			}
			cmptest.Equal(t, "nodes", tc.want, got)
		})
	}
}

func TestExcludedNode(t *testing.T) {
	w := village(t)
	for _, name := range []metric.NodeName{"n1", "n2", "n3"} {
		b := batch(name)
		measured(b, nodeEntity(name), 0, 15e9, 1e9, 1<<30)
		if name != "n3" {
			w.write(t, b)
		}
	}
	o := w.options()
	o.Sources = func() []explain.SourceState {
		return []explain.SourceState{{Name: "excluded", Node: "n3", Unread: &metric.ReadError{Reason: metric.NodeExcluded, Err: errors.New("its labels do not match")}}}
	}
	c, warned := client(t, serve(t, o), "")
	list, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("got %d nodes and %v, want n1 and n2", len(list.Items), err)
	}
	if _, err := c.MetricsV1beta1().PodMetricses("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=unread"}); err != nil {
		t.Fatal(err)
	}
	if got := warned.Take(); got != nil {
		t.Errorf("got warnings %q of what is left out on purpose", got)
	}
	_, err = c.MetricsV1beta1().NodeMetricses().Get(t.Context(), "n3", metav1.GetOptions{})
	want := `nodemetrics.metrics.k8s.io "n3" not found: the configuration excludes the node (NodeExcluded)`
	if err == nil || err.Error() != want {
		t.Errorf("got error\n%v\nwant\n%s", err, want)
	}
}

// A node has no namespace: as with metrics-server, a selector of one matches none, and its opposite
// matches all.
func TestNodesByNamespace(t *testing.T) {
	c, _ := client(t, serve(t, village(t).options()), "")
	all, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 {
		t.Fatalf("got %v, %v; want nodes", all, err)
	}
	for selector, want := range map[string]int{"metadata.namespace=shop": 0, "metadata.namespace!=shop": len(all.Items), "metadata.namespace=": len(all.Items)} {
		got, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(got.Items) != want {
			t.Errorf("%s: got %d nodes, %v; want %d", selector, len(got.Items), err, want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	c, _ := client(t, serve(t, village(t).options()), "")
	_, podErr := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=n1"})
	_, watchErr := c.MetricsV1beta1().PodMetricses("shop").Watch(t.Context(), metav1.ListOptions{})
	for _, tc := range []struct {
		err  error
		code int32
		want string
	}{
		{podErr, http.StatusBadRequest, `"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{watchErr, http.StatusMethodNotAllowed, `watch is not supported on resources of kind "pods.metrics.k8s.io"`},
	} {
		status, ok := tc.err.(apierrors.APIStatus)
		if !ok || status.Status().Code != tc.code || tc.err.Error() != tc.want {
			t.Errorf("got %v, want %d with %q", tc.err, tc.code, tc.want)
		}
	}
}

func TestNotFound(t *testing.T) {
	w := village(t)
	// A pod of the same name follows, and has no numbers yet.
	next := running("kube-system", "agent", "n1", "agent", "agent")
	next.UID = "another"
	w.know(nil, []*cluster.Pod{next, running("shop", "young", "n1", "young", "app")})
	c, _ := client(t, serve(t, w.options()), "")
	pods := func(namespace, name string) error {
		_, err := c.MetricsV1beta1().PodMetricses(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	nodes := func(_, name string) error {
		_, err := c.MetricsV1beta1().NodeMetricses().Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	for _, tc := range []struct {
		get             func(namespace, name string) error
		namespace, name string
		want            string
		cause           string
	}{
		{pods, "shop", "nobody", `pods "nobody" not found`, ""},
		{pods, "nowhere", "web-0", `pods "web-0" not found`, ""},
		{pods, "shop", "job", `podmetrics.metrics.k8s.io "job" not found: the pod has finished (PodFinished)`, "PodFinished"},
		{pods, "shop", "waits", `podmetrics.metrics.k8s.io "waits" not found: the pod has not started; container app waits: ImagePullBackOff (PodPending)`, "PodPending"},
		{pods, "shop", "homeless", `podmetrics.metrics.k8s.io "homeless" not found: the pod has not started; it is bound to no node (PodPending)`, "PodPending"},
		{pods, "shop", "crashes", `podmetrics.metrics.k8s.io "crashes" not found: container app is waiting to start: CrashLoopBackOff (ContainerNotStarted)`, "ContainerNotStarted"},
		{pods, "shop", "web-1", `podmetrics.metrics.k8s.io "web-1" not found: container mesh has no number: it was first seen too recently, and a rate needs two readings (FirstSample)`, "FirstSample"},
		{pods, "shop", "lost", `podmetrics.metrics.k8s.io "lost" not found: the node did not answer in time (NodeTimeout)`, "NodeTimeout"},
		{pods, "shop", "unread", `podmetrics.metrics.k8s.io "unread" not found: the node has not been read yet (NodeNotScrapedYet)`, "NodeNotScrapedYet"},
		{pods, "shop", "young", `podmetrics.metrics.k8s.io "young" not found: the pod started after its node was last read (NodeNotScrapedYet)`, "NodeNotScrapedYet"},
		{pods, "kube-system", "agent", `podmetrics.metrics.k8s.io "agent" not found: the numbers are of an earlier pod of this name (OldPod)`, "OldPod"},
		{nodes, "", "n9", `nodes "n9" not found`, ""},
		{nodes, "", "n2", `nodemetrics.metrics.k8s.io "n2" not found: the node did not answer in time (NodeTimeout)`, "NodeTimeout"},
		{nodes, "", "n3", `nodemetrics.metrics.k8s.io "n3" not found: the node has not been read yet (NodeNotScrapedYet)`, "NodeNotScrapedYet"},
	} {
		err := tc.get(tc.namespace, tc.name)
		if !apierrors.IsNotFound(err) || err.Error() != tc.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tc.name, err, tc.want)
			continue
		}
		cause := ""
		if causes := err.(apierrors.APIStatus).Status().Details.Causes; len(causes) > 0 {
			cause = string(causes[0].Type)
		}
		if cause != tc.cause {
			t.Errorf("%s: got cause %q, want %q", tc.name, cause, tc.cause)
		}
	}
}

func TestWarnings(t *testing.T) {
	c, warned := client(t, serve(t, village(t).options()), "")
	list := func(namespace, selector string) []string {
		t.Helper()
		_, err := c.MetricsV1beta1().PodMetricses(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		return warned.Take()
	}
	for name, tc := range map[string]struct {
		namespace, selector string
		want                []string
	}{
		"all": {want: []string{
			"3 of 6 running pods have no metrics: 1 NodeNotScrapedYet, 1 NodeTimeout, 1 FirstSample",
			"shop/unread: the node has not been read yet (NodeNotScrapedYet)",
			"kubectl weir explain missing shows more",
		}},
		"one of two": {selector: "app=web", want: []string{
			"1 of 2 running pods has no metrics: 1 FirstSample",
			"shop/web-1: container mesh has no number: it was first seen too recently, and a rate needs two readings (FirstSample)",
			"kubectl weir explain pod shop/web-1 shows more",
		}},
		"the only one": {selector: "app=lost", want: []string{
			"1 of 1 running pod has no metrics: 1 NodeTimeout",
			"shop/lost: the node did not answer in time (NodeTimeout)",
			"kubectl weir explain pod shop/lost shows more",
		}},
		"of a namespace": {namespace: "shop", selector: "app!=lost", want: []string{
			"2 of 4 running pods have no metrics: 1 NodeNotScrapedYet, 1 FirstSample",
			"shop/unread: the node has not been read yet (NodeNotScrapedYet)",
			"kubectl weir explain missing -n shop shows more",
		}},
		"none missing":            {namespace: "kube-system"},
		"another's are no matter": {namespace: "nowhere"},
		"waiting and finished":    {selector: "app in (job,waits,homeless)"},
		"nothing of it runs":      {selector: "app=crashes"},
	} {
		t.Run(name, func(t *testing.T) {
			cmptest.Equal(t, "warnings", tc.want, list(tc.namespace, tc.selector))
		})
	}

	if _, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2 of 3 nodes have no metrics: 1 NodeNotScrapedYet, 1 NodeTimeout",
		"n3: the node has not been read yet (NodeNotScrapedYet)",
		"kubectl weir explain missing shows more",
	}
	cmptest.Equal(t, "warnings of nodes", want, warned.Take())
}

// TestReplacedPod lists a pod when the only numbers are those of an earlier pod of its name.
func TestReplacedPod(t *testing.T) {
	w := village(t)
	next := running("kube-system", "agent", "n1", "agent", "agent")
	next.UID = "another"
	w.know(nil, []*cluster.Pod{next})
	c, warned := client(t, serve(t, w.options()), "")
	list, err := c.MetricsV1beta1().PodMetricses("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("got %v and %v, want nothing", list, err)
	}
	want := []string{
		"1 of 1 running pod has no metrics: 1 OldPod",
		"kube-system/agent: the numbers are of an earlier pod of this name (OldPod)",
		"kubectl weir explain pod kube-system/agent shows more",
	}
	cmptest.Equal(t, "warnings", want, warned.Take())
}

// TestNoAmount has a rate and a working set that are not valid amounts. They are not served.
func TestNoAmount(t *testing.T) {
	w := newFixture()
	web, db := running("shop", "web", "n1", "web", "app"), running("shop", "db", "n1", "db", "app")
	w.know([]*cluster.Node{{Name: "n1", Ready: true}}, []*cluster.Pod{web, db})
	b := batch("n1")
	measured(b, nodeEntity("n1"), 0, 15e9, -1, 1<<30)
	measured(b, container(web, "app"), 0, 15e9, math.NaN(), 1<<20)
	measured(b, container(db, "app"), 0, 15e9, 1e6, math.Inf(1))
	w.write(t, b)
	c, _ := client(t, serve(t, w.options()), "")
	pods, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("got %+v and %v, want no pod", pods, err)
	}
	nodes, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("got %+v and %v, want no node", nodes, err)
	}
}
