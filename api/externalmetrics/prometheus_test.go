package externalmetrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/test/promtest"
)

// exposition is the text that the tests' Prometheus scrapes.
const exposition = `# TYPE queue_depth gauge
queue_depth{namespace="shop",queue="mail",tier="gold"} 12.5
queue_depth{namespace="shop",queue="bulk"} 3
queue_depth{namespace="bank",queue="mail"} 1000
# TYPE workers gauge
workers{namespace="shop"} 0
workers{namespace="bank"} 4
# TYPE precise gauge
precise{namespace="shop"} 0.0004999
`

// rulesFor returns the rules of the tests with a real Prometheus.
const rulesFor = `prometheus:
  url: %s
metrics:
  - name: queue_depth
    query: queue_depth
  - name: queue_depth_total
    query: sum(queue_depth)
  - name: all_queues
    query: sum(queue_depth)
    namespaced: false
  - name: per_worker
    query: sum(queue_depth) / sum(workers)
    selectorMetrics: [queue_depth]
  - name: looking_back
    query: max_over_time(queue_depth[2m])
  - name: precise
    query: precise
  - name: many_to_many
    query: queue_depth + on (namespace) queue_depth
  - name: one
    query: scalar(sum(workers))
`

// TestARealPrometheus asks as an autoscaler does, through a real API server.
func TestARealPrometheus(t *testing.T) {
	url := promtest.Scraped(t, exposition, "count(queue_depth) == 3")
	c := client(t, provide(t, Options{}, fmt.Sprintf(rulesFor, url)))
	for _, test := range []struct{ namespace, metric, selector, want string }{
		{"shop", "queue_depth", "", "queue=bulk 3 over -\nqueue=mail,tier=gold 12500m over -"},
		{"shop", "queue_depth", "queue=mail", "queue=mail,tier=gold 12500m over -"},
		{"shop", "queue_depth", "queue in (mail,bulk),tier!=gold", "queue=bulk 3 over -"},
		{"shop", "queue_depth", "!tier", "queue=bulk 3 over -"},
		{"shop", "queue_depth", "tier", "queue=mail,tier=gold 12500m over -"},
		{"shop", "queue_depth_total", "", " 15500m over -"},
		{"bank", "queue_depth_total", "", " 1k over -"},
		{"bank", "per_worker", "queue=mail", " 250 over -"},
		{"bank", "one", "", " 4 over -"},
		{"shop", "all_queues", "", " 1015500m over -"},
		{"shop", "looking_back", "queue=bulk", "queue=bulk 3 over 120s"},
		{"shop", "precise", "", " 0 over -"},

		// No namespace can read the numbers of another.
		{"shop", "queue_depth", "namespace=bank", "the query of queue_depth returns nothing for namespace=shop,namespace=bank"},
		{"empty", "queue_depth", "", "the query of queue_depth returns nothing for namespace=empty"},
		{"shop", "per_worker", "", "the query of per_worker returns +Inf, which is not a number that an autoscaler can use"},
		{"empty", "one", "", "the query of one returns NaN: perhaps it divides by zero"},
		{"shop", "nothing", "", "there is no external metric nothing: the file of rules has queue_depth, queue_depth_total, all_queues, per_worker, looking_back, precise, many_to_many and one"},
		{"shop", "queue_depth", "replicas>3", `queue_depth: the metric selector compares replicas by "gt", which Prometheus cannot: choose by =, !=, in, notin or existence`},
	} {
		if got := ask(t, c, test.namespace, test.metric, test.selector); got != test.want {
			t.Errorf("%s{%s} in %s\n got %s\nwant %s", test.metric, test.selector, test.namespace, got, test.want)
		}
	}
	got := ask(t, c, "shop", "many_to_many", "")
	if want := "many_to_many: Prometheus answered 422: execution: found duplicate series"; !strings.Contains(got, want) {
		t.Errorf("a query that fails: got %s, want %s", got, want)
	}
	list, err := c.NamespacedMetrics("shop").List("queue_depth_total", labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(list.Items[0].Timestamp.Time); age < -time.Second || age > time.Minute {
		t.Errorf("the value is of %v ago, want now", age)
	}
}
