package app

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/test/cmptest"
)

// shopServer is an API server that has a node, a pod, the Deployment shop/web with one replica, and
// a HorizontalPodAutoscaler for it.
type shopServer struct {
	apiServer
	hpa      autoscalingv2.HorizontalPodAutoscaler
	replicas int // of the Deployment

	mu     sync.Mutex
	writes []string
}

// shopPaths are the answers that do not change.
var shopPaths = map[string]string{
	"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1":       `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`,
	"/apis":         `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
	"/apis/apps/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true},{"name":"deployments/scale","kind":"Scale","group":"autoscaling","version":"v1","namespaced":true}]}`,
}

func (s *shopServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		s.mu.Lock()
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	if text, ok := shopPaths[r.URL.Path]; ok {
		fmt.Fprint(w, text)
		return
	}
	if r.URL.Path == "/apis/apps/v1/namespaces/shop/deployments/web/scale" {
		fmt.Fprintf(w, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"namespace":"shop","name":"web"},"spec":{"replicas":%d},"status":{"replicas":1,"selector":"app=web"}}`, s.replicas)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/apis/autoscaling/v2/") {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/web"):
			_ = json.NewEncoder(w).Encode(&s.hpa)
		default:
			list := autoscalingv2.HorizontalPodAutoscalerList{TypeMeta: metav1.TypeMeta{Kind: "HorizontalPodAutoscalerList", APIVersion: "autoscaling/v2"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			list.Items = append(list.Items, s.hpa)
			_ = json.NewEncoder(w).Encode(&list)
		}
		return
	}
	s.apiServer.ServeHTTP(w, r)
}

func newShopServer(t *testing.T) (*shopServer, *httptest.Server) {
	t.Helper()
	list := metav1.ListMeta{ResourceVersion: "1"}
	target := int32(50)
	s := &shopServer{
		replicas: 1,
		apiServer: apiServer{
			nodes: v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Node{{
				ObjectMeta: metav1.ObjectMeta{Name: "n1"},
				Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: "InternalIP", Address: "127.0.0.1"}}, DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 1}},
					Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
			}}},
			pods: v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", UID: "u1", Labels: map[string]string{"app": "web"}},
				Spec: v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "app", Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}}},
				Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
					{Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}}}},
			}}},
		},
		hpa: autoscalingv2.HorizontalPodAutoscaler{
			TypeMeta:   metav1.TypeMeta{Kind: "HorizontalPodAutoscaler", APIVersion: "autoscaling/v2"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "h1"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				MinReplicas:    new(int32), MaxReplicas: 10,
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target}}}},
			},
		},
	}
	*s.hpa.Spec.MinReplicas = 1
	proxy := httptest.NewTLSServer(s)
	t.Cleanup(proxy.Close)
	return s, proxy
}

// decision asks w for the explanation of the autoscaler of shop/web. ok says whether there is one.
func (w *weir) decision(t *testing.T) (r decisionreport.DecisionReport, ok bool) {
	t.Helper()
	status, body := w.get(t, weirdev.Path+"namespaces/shop/horizontalpodautoscalers/web/explanation")
	if status != http.StatusOK {
		return r, false
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("read %s: %v", body, err)
	}
	return r, true
}

// A weir that shadows decides with its own measurements and writes nothing. It says which pods lack
// a number and why: the kubelet of their node does not answer.
func TestServerShadowsAutoscalers(t *testing.T) {
	api, proxy := newShopServer(t)
	w := begin(t, "server", "--listen=127.0.0.1:0", "--kubeconfig="+kubeconfig(t, proxy, "secret"), "--metric-resolution=1s", "--secure-port=0",
		"--shadow-hpa", "--autoscaler-sync-period=1s", "--logging-format=json")
	var got decisionreport.DecisionReport
	until(t, 20*time.Second, "a decision with a reason", func() bool {
		var ok bool
		got, ok = w.decision(t)
		return ok && got.Mode == decisionreport.Shadow && len(got.Missing) > 0 && got.Missing[0].Reason == "NodeUnreachable"
	})
	if got.Target != "Deployment/web" || got.Current != 1 {
		t.Errorf("got %+v, want a shadow's decision about one replica of Deployment/web", got)
	}
	if _, body := w.get(t, "/metrics"); !strings.Contains(body, "weir_autoscaler_") {
		t.Error("the controller's own metrics are not at /metrics")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	if len(api.writes) > 0 {
		t.Errorf("weir wrote: %v", api.writes)
	}
}

// A weir without a controller makes a decision of its own to explain an autoscaler.
func TestServerExplainsUnwatchedAutoscalers(t *testing.T) {
	_, proxy := newShopServer(t)
	w := begin(t, "server", "--listen=127.0.0.1:0", "--kubeconfig="+kubeconfig(t, proxy, "secret"), "--metric-resolution=1s", "--secure-port=0", "--logging-format=json")
	var got decisionreport.DecisionReport
	until(t, 20*time.Second, "a decision", func() bool {
		var ok bool
		got, ok = w.decision(t)
		return ok && len(got.Missing) > 0 && got.Missing[0].Reason == "NodeUnreachable"
	})
	if got.Mode != "" || len(got.Notes) == 0 {
		t.Errorf("got %+v, want an evaluation, and a note that nothing is remembered", got)
	}
	if _, body := w.get(t, "/metrics"); strings.Contains(body, "weir_autoscaler_") {
		t.Error("there are metrics of a controller that does not run")
	}
}

// If a weir shadows and records, its recording has the scale of the autoscaler's target and its
// requests. A replay uses them instead of counting pods.
func TestRecordedRunHoldsTargets(t *testing.T) {
	api, proxy := newShopServer(t)
	api.replicas = 3 // two of them have no pod yet
	thousand := resource.MustParse("1000")
	api.hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: v1.ResourceMemory, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &thousand}}}} // one reading is enough to replay it
	began := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	status := &api.pods.Items[0].Status
	status.StartTime, status.ContainerStatuses[0].State.Running.StartedAt = &began, began
	status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: began}}
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const app = `{container="app",namespace="shop",pod="web-1"}`
		now := time.Now()
		fmt.Fprintf(w, "container_cpu_usage_seconds_total%s %f %d\ncontainer_memory_working_set_bytes%[1]s 1000 %[3]d\n", app, now.Sub(began.Time).Seconds()/2, now.UnixMilli())
	}))
	t.Cleanup(kubelet.Close)
	address, err := netip.ParseAddrPort(strings.TrimPrefix(kubelet.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	api.nodes.Items[0].Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port())
	dir := t.TempDir()
	file, hpa := filepath.Join(dir, "run.weirrec"), filepath.Join(dir, "hpa.yaml")
	t.Run("record", func(t *testing.T) {
		w := begin(t, "server", "--listen=127.0.0.1:0", "--kubeconfig="+kubeconfig(t, proxy, "secret"), "--metric-resolution=1s", "--secure-port=0",
			"--kubelet-use-node-status-port", "--shadow-hpa", "--autoscaler-sync-period=1s", "--sink=memory", "--sink=recording:"+file, "--logging-format=json")
		until(t, 20*time.Second, "a first reading", func() bool { // the rate of CPU takes longer
			got, ok := w.decision(t)
			return ok && len(got.Missing) > 0 && got.Missing[0].Reason == "FirstSample"
		})
	})

	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var targets []*recording.ScaleTarget
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame.Kind == recording.Scale {
			targets = append(targets, frame.Scale)
		}
	}
	spec, err := json.Marshal(&api.hpa.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := []*recording.ScaleTarget{{
		Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", Replicas: 3, Current: 1, Selector: "app=web", HPA: "web", Spec: spec,
	}}
	cmptest.Equal(t, "recorded", want, targets)

	manifest := strings.Replace(replayManifest, "{name: cpu, target: {type: Utilization, averageUtilization: 50}}", "{name: memory, target: {type: AverageValue, averageValue: 1000}}", 1)
	if err := os.WriteFile(hpa, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if status := cli.Main(t.Context(), NewCommand(nothing, nobody), []string{"autoscaler", "replay", "--recording", file, "-f", hpa, "--csv", "-"}, &out, &errs); status != 0 {
		t.Fatalf("weir autoscaler replay: exit status %d\n%s", status, errs.String())
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("got %v, %v; want a table of at least a row", rows, err)
	}
	column := slices.Index(rows[0], "recorded")
	if last := rows[len(rows)-1]; column < 0 || last[column] != "3" {
		t.Errorf("got the columns %v and at last %v, want the 3 replicas that were recorded", rows[0], last)
	}
}

// replayManifest is an HPA on half of the requested CPU.
const replayManifest = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
`
