package importcmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/internal/humanize"
)

// converter makes weir's rules from those of prometheus-adapter.
type converter struct {
	file string
	// series returns the series that a selector matches; nil without a Prometheus.
	series func(selector string) ([]map[string]string, error)
	// custom are the custom resources that the cluster has, as far as known.
	custom []schema.GroupResource
	rules  []writtenRule
	notes  []note
}

// note is a sentence about a line of the adapter's file. lost is set if something is not carried over.
type note struct {
	line int
	lost bool
	text string
}

func (n *note) in(file string) string {
	return fmt.Sprintf("%s:%d: %s", file, n.line, humanize.Excerpt(n.text, maxText))
}

// writtenRule is a rule of weir in its file.
type writtenRule struct {
	Name            string   `yaml:"name"`
	For             any      `yaml:"for,omitempty"`
	Query           string   `yaml:"query"`
	Namespaced      *bool    `yaml:"namespaced,omitempty"`
	NamespaceLabel  string   `yaml:"namespaceLabel,omitempty"`
	SelectorMetrics []string `yaml:"selectorMetrics,omitempty"`

	id   string // as in discovery
	line int    // in the adapter's file
	from string // the seriesQuery of that line
}

// writtenObject is the mapping of for.
type writtenObject struct {
	Group    string `yaml:"group,omitempty"`
	Resource string `yaml:"resource"`
	Label    string `yaml:"label"`
}

// text returns the rule as an item of metrics.
func (r *writtenRule) text() string {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	_ = e.Encode([]*writtenRule{r}) // of text, so it cannot fail
	return "  " + strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", "\n  ") + "\n"
}

// convert fills rules and notes.
func (c *converter) convert(config *adapterConfig) {
	for i := range config.Rules {
		c.convertRule(&config.Rules[i], c.customMetric)
	}
	for i := range config.ExternalRules {
		c.convertRule(&config.ExternalRules[i], c.externalMetric)
	}
	if config.resourceLine > 0 {
		c.note(note{line: config.resourceLine, text: "resourceRules need no rules: weir serves metrics.k8s.io from the kubelets"})
	}
}

// lose notes that something is not carried over.
func (c *converter) lose(r *adapterRule, format string, args ...any) {
	c.note(note{r.line, true, "not carried over: " + fmt.Sprintf(format, args...)})
}

func (c *converter) remark(r *adapterRule, format string, args ...any) {
	c.note(note{r.line, false, fmt.Sprintf(format, args...)})
}

// note adds a note once: what holds for several objects of a metric is one note.
func (c *converter) note(n note) {
	if !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// family is the series with one name.
type family struct {
	name   string
	labels map[string]bool
}

// convertRule calls convert for each family of series of a rule, with the name of its metric.
func (c *converter) convertRule(r *adapterRule, convert func(r *adapterRule, f family, name string)) {
	naming, err := newNaming(r)
	if err != nil {
		c.lose(r, "%v", err)
		return
	}
	families, err := c.families(r)
	if err != nil {
		c.lose(r, "%v", err)
		return
	}
	n := 0
	for _, f := range families {
		if name, ok := naming.metric(f.name); ok {
			n++
			convert(r, f, name)
		}
	}
	if n == 0 {
		c.lose(r, "no series of %s has a name that seriesFilters and name.matches let through", r.SeriesQuery)
	}
}

// families returns the families of a rule, sorted by name: those that Prometheus has, or else the one that the
// query names.
func (c *converter) families(r *adapterRule) ([]family, error) {
	if c.series == nil {
		f, ok := namedFamily(r.SeriesQuery)
		if !ok {
			return nil, fmt.Errorf("seriesQuery %s names no single metric: name a Prometheus with --url, to see which there are", r.SeriesQuery)
		}
		for label := range r.Resources.Overrides {
			f.labels[label] = true
		}
		return []family{f}, nil
	}
	series, err := c.series(r.SeriesQuery)
	if err != nil {
		return nil, fmt.Errorf("list the series of %s: %w", r.SeriesQuery, err)
	}
	byName := map[string]family{}
	for _, s := range series {
		f, ok := byName[s[model.MetricNameLabel]]
		if !ok {
			f = family{s[model.MetricNameLabel], map[string]bool{}}
			byName[f.name] = f
		}
		for label := range s {
			f.labels[label] = true
		}
	}
	if len(byName) == 0 {
		return nil, fmt.Errorf("there was no series of %s in Prometheus in the last hour", r.SeriesQuery)
	}
	var all []family
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all, nil
}

// namedFamily returns the family that a selector names, with the labels that it requires.
func namedFamily(selector string) (f family, ok bool) {
	expr, err := promql.ParseExpr(selector)
	if err != nil {
		return f, false
	}
	v, ok := expr.(*parser.VectorSelector)
	if !ok || rules.MetricName(v) == "" {
		return f, false
	}
	f = family{rules.MetricName(v), map[string]bool{}}
	for _, m := range v.LabelMatchers {
		if !m.Matches("") {
			f.labels[m.Name] = true
		}
	}
	return f, true
}

// naming is how series become metrics.
type naming struct {
	filters []func(string) bool
	matches *regexp.Regexp
	format  string
}

func newNaming(r *adapterRule) (*naming, error) {
	n := &naming{format: r.Name.As}
	for _, f := range r.SeriesFilters {
		if (f.Is == "") == (f.IsNot == "") {
			return nil, errors.New("a filter of seriesFilters needs one of is and isNot")
		}
		re, err := regexp.Compile(f.Is + f.IsNot)
		if err != nil {
			return nil, fmt.Errorf("seriesFilters: %w", err)
		}
		n.filters = append(n.filters, func(name string) bool { return re.MatchString(name) == (f.Is != "") })
	}
	matches := cmp.Or(r.Name.Matches, ".*")
	var err error
	if n.matches, err = regexp.Compile(matches); err != nil {
		return nil, fmt.Errorf("name.matches: %w", err)
	}
	if n.format == "" {
		if n.matches.NumSubexp() > 1 {
			return nil, fmt.Errorf("name.matches %s has several groups, and there is no name.as", matches)
		}
		n.format = fmt.Sprintf("$%d", n.matches.NumSubexp())
	}
	return n, nil
}

// metric returns the name of the metric of a series. ok is false if the rule leaves the series out.
func (n *naming) metric(series string) (name string, ok bool) {
	for _, lets := range n.filters {
		if !lets(series) {
			return "", false
		}
	}
	at := n.matches.FindStringSubmatchIndex(series)
	if at == nil {
		return "", false
	}
	return string(n.matches.ExpandString(nil, n.format, series, at)), true
}

// objects returns the objects of a family by their labels, and the label of the namespace.
func (c *converter) objects(r *adapterRule, f family) (byLabel map[string]rules.Object, namespaceLabel string, err error) {
	byLabel = map[string]rules.Object{}
	labelOf := map[schema.GroupResource]string{}
	for label, o := range r.Resources.Overrides {
		object := c.objectOf(o.Group, o.Resource)
		if object.IsNamespace() {
			namespaceLabel = label
		}
		labelOf[object.Resource] = label
		if f.labels[label] {
			byLabel[label] = object
		}
	}
	if r.Resources.Template == "" {
		return byLabel, namespaceLabel, nil
	}
	t, err := newLabelTemplate(r.Resources.Template)
	if err != nil {
		return nil, "", err
	}
	if namespaceLabel == "" {
		namespaceLabel = t.label("", "namespace")
	}
	var unknown []string
	for _, label := range slices.Sorted(maps.Keys(f.labels)) {
		group, resource, ok := t.resource(label)
		if _, known := byLabel[label]; known || !ok {
			continue
		}
		o, ok := c.knownObject(group, resource)
		if !ok {
			unknown = append(unknown, label)
			continue
		}
		// The adapter asks by the label that it has for the resource, whichever label made it look.
		asked := cmp.Or(labelOf[o.Resource], t.label(sanitizeGroup(o.Resource.Group), o.Label))
		if asked != label {
			c.remark(r, "the label %s is of %s, for which prometheus-adapter asks by the label %s, and so does the rule", label, o.Resource, asked)
		}
		byLabel[asked] = o
	}
	if c.series == nil && f.labels != nil {
		c.remark(r, "resources.template: of the labels of %s, those that seriesQuery requires are known; name a Prometheus with --url, to see the others", f.name)
	}
	if len(unknown) > 0 {
		c.remark(r, "labels of %s that are of no resource of Kubernetes itself: %s; name custom resources with --custom-resource", f.name, humanize.List(unknown, 0))
	}
	return byLabel, namespaceLabel, nil
}

// sanitizeGroup returns a group as it is in labels.
func sanitizeGroup(group string) string {
	return strings.NewReplacer(".", "_", "-", "_").Replace(group)
}

// labelTemplate is resources.template: how a resource becomes a label, and a label a resource.
type labelTemplate struct {
	*template.Template
	pattern *regexp.Regexp
}

func newLabelTemplate(text string) (*labelTemplate, error) {
	t, err := template.New("template").Delims("<<", ">>").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("resources.template: %w", err)
	}
	l := &labelTemplate{Template: t}
	l.pattern, err = regexp.Compile("^" + l.label("(?P<group>.+?)", "(?P<resource>.+?)") + "$")
	if err != nil || l.pattern.SubexpIndex("resource") < 0 {
		return nil, fmt.Errorf("resources.template %s is not a template with <<.Resource>>", text)
	}
	return l, nil
}

// label returns the label of a resource, or nothing if the template fails.
func (l *labelTemplate) label(group, resource string) string {
	var out strings.Builder
	if err := l.Execute(&out, schema.GroupResource{Group: group, Resource: resource}); err != nil {
		return ""
	}
	return out.String()
}

// resource returns the resource of a label. ok is false if the label does not have the template's form.
func (l *labelTemplate) resource(label string) (group, resource string, ok bool) {
	match := l.pattern.FindStringSubmatch(label)
	if match == nil || label == model.MetricNameLabel {
		return "", "", false
	}
	if i := l.pattern.SubexpIndex("group"); i >= 0 {
		group = match[i]
	}
	return group, match[l.pattern.SubexpIndex("resource")], true
}

// knownObject is rules.KnownObject, with the custom resources that the user names.
func (c *converter) knownObject(group, resource string) (rules.Object, bool) {
	if o, ok := rules.KnownObject(group, resource); ok {
		return o, true
	}
	for _, r := range c.custom {
		singular := rules.SingularOf(r.Resource)
		if rules.IsCalled(r, singular, group, resource) {
			return rules.Object{Resource: r, Label: singular, Namespaced: true}, true
		}
	}
	return rules.Object{}, false
}

// objectOf returns the object of an override. The resource of an unknown one is made a plural.
func (c *converter) objectOf(group, resource string) rules.Object {
	group, resource = strings.ToLower(group), strings.ToLower(resource) // as the adapter does
	if o, ok := c.knownObject(group, resource); ok {
		return o
	}
	if !strings.HasSuffix(resource, "s") || strings.HasSuffix(resource, "ss") {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: resource})
		resource = plural.Resource
	}
	return rules.Object{Resource: schema.GroupResource{Group: group, Resource: resource}, Namespaced: true}
}

// customMetric adds a rule for each object that a family is of.
func (c *converter) customMetric(r *adapterRule, f family, name string) {
	byLabel, namespaceLabel, err := c.objects(r, f)
	if err != nil {
		c.lose(r, "%v", err)
		return
	}
	if len(byLabel) == 0 {
		c.lose(r, "no label of %s is of a resource (resources), so prometheus-adapter serves it for no object", f.name)
	}
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		o := byLabel[label]
		rule := rules.Rule{Name: name, Object: &o}
		id := rule.ID()
		c.redefine(r, id)
		narrowLabel := namespaceLabel
		switch {
		case o.IsNamespace():
			narrowLabel = label
		case !o.Namespaced:
			narrowLabel = ""
		case narrowLabel == "":
			c.lose(r, "%s: no label is of the namespace (resources), so prometheus-adapter cannot ask for it", name)
			continue
		}
		q, err := convertQuery(r.MetricsQuery, f.name, label, narrowLabel)
		if err != nil {
			c.lose(r, "%s: %v", name, err)
			continue
		}
		w := writtenRule{Name: name, id: id, line: r.line, from: r.SeriesQuery, For: forObject(&o, label)}
		if !o.Namespaced && !o.IsNamespace() && o.Version == "" {
			w.Namespaced = new(bool)
		}
		if narrowLabel != rules.DefaultNamespaceLabel && !o.IsNamespace() {
			w.NamespaceLabel = narrowLabel
		}
		c.add(r, w, q, narrowLabel)
	}
}

// forObject returns the value of for: the word of a known object, or a mapping.
func forObject(o *rules.Object, label string) any {
	if o.Label == label && o.Version != "" {
		return label
	}
	return writtenObject{o.Resource.Group, o.Resource.Resource, label}
}

// externalMetric adds the rule of a family.
func (c *converter) externalMetric(r *adapterRule, f family, name string) {
	c.redefine(r, name)
	w := writtenRule{Name: name, id: name, line: r.line, from: r.SeriesQuery}
	narrowLabel := ""
	if n := r.Resources.Namespaced; n == nil || *n {
		var err error
		if _, narrowLabel, err = c.objects(r, family{name: f.name}); err != nil {
			c.lose(r, "%v", err)
			return
		}
		if narrowLabel == "" {
			narrowLabel = rules.DefaultNamespaceLabel
			c.remark(r, "%s has no label of the namespace (resources), so prometheus-adapter answers no request for it; the rule takes the label %s", name, narrowLabel)
		}
	}
	q, err := convertQuery(r.MetricsQuery, f.name, "", narrowLabel)
	if err != nil {
		c.lose(r, "%s: %v", name, err)
		return
	}
	if len(q.narrowed) == 0 {
		c.remark(r, "the query of %s has no <<.LabelMatchers>>: it is for all namespaces, and weir narrows it by the selector of the HPA", name)
		narrowLabel, q.others = "", nil
	}
	switch narrowLabel {
	case "":
		w.Namespaced = new(bool)
	case rules.DefaultNamespaceLabel:
	default:
		w.NamespaceLabel = narrowLabel
	}
	c.add(r, w, q, narrowLabel)
}

// add adds a rule with a query that is narrowed by the label of the namespace, if weir can narrow it as
// the adapter does.
func (c *converter) add(r *adapterRule, w writtenRule, q *convertedQuery, namespaceLabel string) {
	w.Query = q.text
	if len(q.others) > 0 {
		both := slices.ContainsFunc(q.others, func(name string) bool { return name == "" || slices.Contains(q.narrowed, name) })
		if namespaceLabel != "" || both {
			c.lose(r, "%s: a metric of its query (%s) has no <<.LabelMatchers>>, and weir narrows every metric of a query to the namespace", w.Name, humanize.List(q.others, 5))
			return
		}
		w.SelectorMetrics = slices.Compact(slices.Sorted(slices.Values(q.narrowed)))
	}
	const head = "prometheus: {url: http://p}\nmetrics:\n"
	if _, err := rules.Parse(c.file, []byte(head+w.text())); err != nil {
		var mistakes rules.Mistakes
		if errors.As(err, &mistakes) {
			err = errors.New(mistakes[0].Text)
		}
		c.lose(r, "%s: %v", w.Name, err)
		return
	}
	c.rules = append(c.rules, w)
}

// redefine removes the rule that an earlier line has for a metric: prometheus-adapter uses the last one, also where weir
// cannot.
func (c *converter) redefine(r *adapterRule, id string) {
	for i := range c.rules {
		if c.rules[i].id == id {
			c.note(note{c.rules[i].line, true, fmt.Sprintf("not carried over: %s is defined again on line %d, which prometheus-adapter uses", id, r.line)})
			c.rules = slices.Delete(c.rules, i, i+1)
			return
		}
	}
}
