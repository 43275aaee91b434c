package promadapter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// base is a series that random rules are about; another one, a counter, has its name with _total.
type base struct {
	name, namespaceLabel string
	objects              []string // overrides, as in YAML
	others               []string // labels that are of no object
}

var bases = []base{
	{"http_requests", "namespace", []string{"pod: {resource: pod}", "service: {resource: services}", "node: {resource: node}", "job: {group: batch, resource: job}"}, []string{"path", "code"}},
	{"work_items", "namespace", []string{"pod: {resource: pods}", "service: {resource: Service}", "node: {resource: nodes}"}, []string{"instance"}},
	{"work_bytes", "namespace", []string{"pod: {resource: pod}"}, []string{"service"}},
	{"svc_load", "namespace", []string{"svc: {resource: service}"}, []string{"zone"}},
	{"ingress_hits", "exported_namespace", []string{"ingress: {group: networking.k8s.io, resource: ingress}"}, []string{"namespace"}},
	{"deploy_lag", "namespace", []string{"deployment: {group: apps, resource: deployments}", "statefulset: {group: apps, resource: statefulset}"}, nil},
	{"replica_lag", "namespace", []string{"replicator: {group: example.com, resource: replicators}", "policy: {group: example.com, resource: policies}"}, nil},
	{"claim_bytes", "namespace", []string{"persistentvolumeclaim: {resource: persistentvolumeclaim}", "persistentvolume: {resource: persistentvolumes}"}, nil},
	{"queue_depth", "namespace", nil, []string{"queue", "tier"}},
	{"node_heat", "", []string{"node: {resource: node}"}, nil},
}

// generator writes random configurations.
type generator struct{ *rand.Rand }

func (g generator) pick(all ...string) string { return all[g.IntN(len(all))] }

// some returns each of all with probability one half, but at least one if there is one.
func (g generator) some(all []string) (chosen []string) {
	for _, one := range all {
		if g.IntN(2) == 0 {
			chosen = append(chosen, one)
		}
	}
	if len(chosen) == 0 && len(all) > 0 {
		chosen = append(chosen, all[g.IntN(len(all))])
	}
	return chosen
}

// selector returns <<.Series>> with matchers.
func (g generator) selector(b *base) string {
	matchers := "<<.LabelMatchers>>"
	if len(b.others) > 0 && g.IntN(4) == 0 {
		one := g.pick(b.others...) + g.pick(`=~"a.*|2.*|mail"`, `!="x"`, `!~"1.*"`, `!=""`)
		matchers = g.pick(one+","+matchers, matchers+","+one)
	}
	return "<<.Series>>{" + matchers + "}"
}

// vector returns an expression that aggregates by what grouping says.
func (g generator) vector(b *base, counter bool, grouping string) string {
	inner := g.selector(b)
	switch {
	case counter:
		inner = fmt.Sprintf("%s(%s[%s])", g.pick("rate", "increase"), inner, g.pick("1m", "2m", "5m"))
	case g.IntN(4) == 0:
		inner = fmt.Sprintf("%s(%s[%s])", g.pick("avg_over_time", "max_over_time", "last_over_time"), inner, g.pick("1m", "90s"))
	}
	operator := g.pick("sum", "sum", "avg", "max", "min", "count", "stddev")
	if g.IntN(2) == 0 {
		return fmt.Sprintf("%s(%s) by (%s)", operator, inner, grouping)
	}
	return fmt.Sprintf("%s by (%s) (%s)", operator, grouping, inner)
}

func (g generator) query(b *base, counter bool, grouping string) string {
	v := g.vector(b, counter, grouping)
	switch g.IntN(12) {
	case 0:
		return v + g.pick(" * 3", " / 7", " > 20", " + 0.0004", " % 5", " ^ 2")
	case 1:
		return v + g.pick(" / ", " + ", " - ", " or ", " and ", " unless ") + g.vector(b, counter, grouping)
	case 2:
		return g.pick("ceil", "sqrt", "abs", "-") + "(" + v + ")"
	case 3:
		return fmt.Sprintf("max_over_time((%s)[%s:15s])", v, g.pick("1m", "3m"))
	case 4:
		return fmt.Sprintf("clamp(%s, 1, 500)", v)
	case 5:
		return fmt.Sprintf("%s(1, %s)", g.pick("topk", "bottomk"), v)
	case 6:
		if !counter { // a counter's value depends on the moment
			return g.selector(b)
		}
	}
	return v
}

// seriesQuery returns a selector of one series or counter.
func (g generator) seriesQuery(b *base, name string) string {
	label := "__name__"
	if b.namespaceLabel != "" {
		label = b.namespaceLabel
	}
	return g.pick(name, fmt.Sprintf(`%s{%s!=""}`, name, label), fmt.Sprintf(`{__name__=%q,%s!=""}`, name, label), fmt.Sprintf(`{__name__=~"^%s$"}`, name))
}

// names returns a part of a rule that names its metric.
func (g generator) names(number int, counter bool) string {
	switch {
	case g.IntN(10) == 0:
		return "  name: {as: shared}\n" // the last rule wins
	case counter && g.IntN(2) == 0:
		return fmt.Sprintf("  name: {matches: \"^(.*)_total$\", as: \"${1}_%d\"}\n", number)
	}
	return fmt.Sprintf("  name: {matches: %q, as: \"$0:r%d\"}\n", g.pick("", ".*", "^.+$", "^[a-z_]+$"), number)
}

func (g generator) rule(number int, external bool) string {
	b := &bases[g.IntN(len(bases))]
	for !external && len(b.objects) == 0 {
		b = &bases[g.IntN(len(bases))]
	}
	counter := g.IntN(2) == 0
	name := b.name
	if counter {
		name += "_total"
	}
	overrides := g.some(b.objects)
	if b.namespaceLabel != "" {
		overrides = append(overrides, b.namespaceLabel+": {resource: "+g.pick("namespace", "namespaces")+"}")
	}
	resources := "overrides: {" + strings.Join(overrides, ", ") + "}"
	switch {
	case external && (b.namespaceLabel == "" || g.IntN(3) == 0):
		resources = "namespaced: false"
	case b.namespaceLabel == "namespace" && g.IntN(3) == 0:
		resources = "template: <<.Resource>>"
	}
	filters := ""
	if g.IntN(3) == 0 {
		filters = "  seriesFilters: " + g.pick(`[{is: "^[a-z]"}]`, `[{isNot: "^none"}, {is: "_"}]`, `[{isNot: "_total$"}]`, `[{is: "s"}]`) + "\n"
	}
	grouping := g.pick("<<.GroupBy>>", "<<.GroupBy>>", "<<index .GroupBySlice 0>>")
	if external {
		grouping = strings.Join(g.some(b.others), ",")
	}
	return fmt.Sprintf("- seriesQuery: '%s'\n%s  resources: {%s}\n%s  metricsQuery: '%s'\n",
		g.seriesQuery(b, name), filters, resources, g.names(number, counter), g.query(b, counter, grouping))
}

// config returns a configuration of a few rules.
func (g generator) config() []byte {
	var out strings.Builder
	out.WriteString("rules:\n")
	for i := range 2 + g.IntN(5) {
		out.WriteString(g.rule(i, false))
	}
	out.WriteString("- {seriesQuery: work_items, resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}, name: {as: always}, metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'}\nexternalRules:\n")
	for i := range 1 + g.IntN(4) {
		out.WriteString(g.rule(i, true))
	}
	out.WriteString("- {seriesQuery: work_items, resources: {namespaced: false}, name: {as: always}, metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'}\n")
	return []byte(out.String())
}

// TestRandomConfigurations asks some questions about each of many configurations.
func TestRandomConfigurations(t *testing.T) {
	prometheus := startPrometheus(t)
	objectsURL, _ := serveObjects(t, objects)
	asked, answers := 0, 0
	for i := range *configs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			g := generator{rand.New(rand.NewPCG(*seed, uint64(i)))}
			content := g.config()
			c := compare(t, content, prometheus, objectsURL)
			c.everything(t, func() bool { return g.IntN(12) == 0 })
			if c.failures > 0 {
				t.Errorf("%d differences. Again: go test -C test/parity ./promadapter -run 'TestRandomConfigurations/^%d$' -seed %d -configs %d\n%s\nbecame\n%s\n%s", c.failures, i, *seed, i+1, content, c.rules, c.notes)
			}
			asked, answers = asked+c.asked, answers+c.answers
		})
	}
	t.Logf("%d questions, %d answers with values", asked, answers)
}
