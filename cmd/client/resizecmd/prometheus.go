package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/promusage"
)

// prometheusFlags are the flags for reading usage from a Prometheus.
type prometheusFlags struct {
	url, caFile, tokenFile, since string
	headers                       map[string]string
	span                          time.Duration
}

func (p *prometheusFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.url, "prometheus", "", "`URL` of a Prometheus-compatible server to take readings from, in place of weir's memory")
	f.StringVar(&p.since, "since", "7d", "how far back readings of --prometheus go: 36h, 7d")
	f.StringVar(&p.caFile, "ca-file", "", "`FILE` of CA certificates that verify --prometheus (default: the system's)")
	f.StringVar(&p.tokenFile, "token-file", "", "`FILE` with a bearer token for --prometheus")
	f.StringToStringVar(&p.headers, "header", nil, "headers for --prometheus: X-Scope-OrgID=shop")
}

// check returns an error for flags that make no sense, and sets a minimum history that fits the
// span.
func (p *prometheusFlags) check(f *pflag.FlagSet, o *resize.Options) error {
	if p.url == "" {
		for _, name := range []string{"since", "ca-file", "token-file", "header"} {
			if f.Changed(name) {
				return cli.Usage(fmt.Errorf("--%s needs --prometheus=URL", name))
			}
		}
		return nil
	}
	span, err := model.ParseDuration(p.since)
	if err != nil || span <= 0 {
		return cli.Usage(fmt.Errorf("--since: %q is not a duration: write 36h or 7d", p.since))
	}
	p.span = time.Duration(span)
	if !f.Changed("min-history") {
		o.MinHistory = min(24*time.Hour, p.span/2)
	}
	for name := range p.headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return cli.Usage(errors.New("credentials do not belong on a command line: use --token-file"))
		}
	}
	return nil
}

// maxAnswerBytes limits one answer of Prometheus: two thousand points of a few hundred containers.
const maxAnswerBytes = 256 << 20

// recommend returns what weir's API would return, but with the readings of Prometheus. line shows
// what it is doing.
func (p *prometheusFlags) recommend(ctx context.Context, client Pods, r resizeapi.Request, line *cli.Progress) (*resizeapi.RecommendationList, error) {
	line.Set("listing pods", 0, 0)
	var groups resize.Groups
	if r.Workload.Name != "" {
		groups.Expect(r.Namespace, r.Workload)
	}
	pods, err := readPods(ctx, client, r, &groups)
	if err != nil {
		return nil, err
	}
	asker, err := p.open(line)
	if err != nil {
		return nil, err
	}
	defer asker.Close()
	now := time.Now()
	used, err := promusage.Read(ctx, asker,
		promusage.Request{Namespace: r.Namespace, Pod: r.Pod, From: now.Add(-p.span), To: now})
	if err != nil {
		return nil, err
	}
	list := resizeapi.NewList(now, "Prometheus")
	if r.Workloads || r.Workload.Name != "" {
		for e := range used.Containers() {
			groups.AddGone(string(e.Namespace), string(e.Pod), "", e.Name)
		}
		list.AddWorkloads(&groups, &r, func(w *resize.Workload) func(resize.Member, string, resize.Resource) []resize.UsagePoint {
			return func(m resize.Member, container string, what resize.Resource) []resize.UsagePoint {
				return used.Points(w.Namespace, m.Pod, container, what)
			}
		})
		if len(list.Items) == 0 && r.Workload.Name != "" {
			return nil, resizeapi.NoPods(r)
		}
		return list, checkReadings(list)
	}
	for _, pod := range pods {
		rec := resize.Recommend(pod, func(container string, what resize.Resource) []resize.UsagePoint {
			return used.Points(pod.Namespace, pod.Name, container, what)
		}, r.Options)
		list.Add(rec, r.All || r.Pod != "")
	}
	list.AddNotes(false)
	return list, checkReadings(list)
}

// open returns a client of the Prometheus, which the caller closes.
func (p *prometheusFlags) open(line *cli.Progress) (*history.Client, error) {
	client, err := history.New(history.Options{URL: p.url, CAFile: p.caFile, BearerTokenFile: p.tokenFile, Headers: p.headers, MaxAnswer: maxAnswerBytes, Progress: line.Query})
	if err != nil {
		return nil, fmt.Errorf("--prometheus: %w", err)
	}
	return client, nil
}

// errNoReadings is the answer of a Prometheus without readings of the containers.
var errNoReadings = cli.Hintf(errors.New("the Prometheus knows nothing of what these containers used in that time"),
	"Does it scrape weir's /metrics/cluster (with honor_labels: true) or the kubelets' /metrics/cadvisor?")

// checkReadings returns an error if no readings were found.
func checkReadings(list *resizeapi.RecommendationList) error {
	if list.To.IsZero() {
		return errNoReadings
	}
	return nil
}

// readPods reads the requested pods from the API server, without those that have ended, and adds all to
// groups. The API server sorts them by namespace and name.
func readPods(ctx context.Context, client Pods, r resizeapi.Request, groups *resize.Groups) ([]*resize.PodResources, error) {
	if r.Pod != "" {
		pod, err := client.GetPod(ctx, r.Namespace, r.Pod)
		if err != nil {
			return nil, fmt.Errorf("read pod: %w", err)
		}
		return []*resize.PodResources{resize.FromPod(pod)}, nil
	}
	var pods []*resize.PodResources
	err := eachItem(ctx, client, listPath("v1", r.Namespace, "pods"), func(pod *corev1.Pod) {
		from := resize.FromPod(pod)
		if !ended(pod) {
			pods = append(pods, from)
		}
		known := cluster.Pod{Labels: pod.Labels}
		if o := metav1.GetControllerOfNoCopy(pod); o != nil {
			known.Owner = &cluster.Owner{Kind: o.Kind, Name: o.Name}
		}
		member := *from
		member.Node = "" // the readings have no node
		groups.Add(&member, known.Workload(), pod.CreationTimestamp.Time)
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pods, nil
}
