package rules

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/weir-metrics/weir/internal/humanize"
)

// MaxSize is the maximum size of a file in bytes. A ConfigMap holds no more.
const MaxSize = 1 << 20

// Parse is ParseFor a weir whose memory has the default length.
func Parse(file string, content []byte) (*Rules, error) { return ParseFor(Memory{}, file, content) }

// ParseFor reads the content of a file for a weir with this memory. file is its name in mistakes. The
// error is a Mistakes with all mistakes. If all of them are inside of rules, the other rules are
// returned, too.
func ParseFor(memory Memory, file string, content []byte) (*Rules, error) {
	p := &fileParser{file: file, memory: memory, source: strings.Split(string(content), "\n"), rules: &Rules{broken: map[string]string{}}}
	p.read(content)
	p.rules.index()
	if len(p.mistakes) == 0 {
		return p.rules, nil
	}
	p.mistakes.sort()
	if slices.ContainsFunc(p.mistakes, func(m Mistake) bool { return !m.InRule }) {
		return nil, p.mistakes
	}
	return p.rules, p.mistakes
}

// fileParser is the state of one Parse.
type fileParser struct {
	file     string
	memory   Memory
	source   []string // lines
	mistakes Mistakes
	rules    *Rules
}

// addMistake adds a mistake at n, or about the file as a whole if n is nil.
func (p *fileParser) addMistake(n *yaml.Node, format string, args ...any) *Mistake {
	m := Mistake{File: p.file, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		// YAML has line breaks that editors do not count.
		m.Line, m.Column = min(n.Line, len(p.source)), n.Column
	}
	p.mistakes = append(p.mistakes, m)
	return &p.mistakes[len(p.mistakes)-1]
}

func (p *fileParser) read(content []byte) {
	if len(content) > MaxSize {
		p.addMistake(nil, "the file has %d bytes: at most %d are read", len(content), MaxSize)
		return
	}
	d := yaml.NewDecoder(strings.NewReader(string(content)))
	var document yaml.Node
	if err := d.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			p.addMistake(nil, "the file is empty: it needs prometheus: and metrics:")
			return
		}
		p.syntax(err)
		return
	}
	var more yaml.Node
	if err := d.Decode(&more); err == nil {
		p.addMistake(&more, "a second document begins here: a file holds one")
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
	}
	root := resolveAlias(document.Content[0])
	var metrics *yaml.Node
	p.mapping(root, "the file", fields{
		"prometheus":   {required: !hasOnlyOverTime(root), read: func(n *yaml.Node) { p.rules.Prometheus = p.prometheus(n, "prometheus") }},
		"prometheuses": {read: p.prometheuses},
		"metrics":      {required: true, read: func(n *yaml.Node) { metrics = n }},
	})
	if metrics != nil { // they name what prometheuses has
		p.metrics(metrics)
	}
}

// yamlLine matches the beginning of a YAML error that has a line.
var yamlLine = regexp.MustCompile(`^yaml: (?:while .*? at )?line (\d+)(?:, column \d+)?: `)

// syntax adds an error of the YAML library.
func (p *fileParser) syntax(err error) {
	text, where := err.Error(), "this is not YAML"
	var at *yaml.Node
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		at = &yaml.Node{Line: line, Column: 1}
		text, where = text[len(m[0]):], "from about here on this is not YAML" // the library gives no position
	}
	p.addMistake(at, "%s: %s", where, strings.TrimPrefix(text, "yaml: "))
}

// prometheuses reads the servers that rules name.
func (p *fileParser) prometheuses(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.addMistake(n, "prometheuses is %s: write a line NAME: {url: …} for each", kindOf(n))
		return
	}
	p.rules.Others = map[string]Prometheus{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolveAlias(n.Content[i+1])
		if _, twice := p.rules.Others[key.Value]; twice || key.Value == "" {
			p.addMistake(key, "%q is there twice, or is empty: give each server a name of its own", key.Value)
			continue
		}
		p.rules.Others[key.Value] = p.prometheus(value, key.Value)
	}
}

// prometheus reads a server. what names it in mistakes.
func (p *fileParser) prometheus(n *yaml.Node, what string) Prometheus {
	to := &Prometheus{Timeout: DefaultTimeout}
	var basic, token *yaml.Node
	p.mapping(n, what, fields{
		"url":             {required: true, read: func(n *yaml.Node) { p.url(n, &to.URL) }},
		"timeout":         {read: func(n *yaml.Node) { p.duration(n, "timeout", "10s", maxTimeout, &to.Timeout) }},
		"caFile":          {read: p.text(&to.CAFile, "caFile")},
		"certFile":        {read: p.text(&to.CertFile, "certFile")},
		"keyFile":         {read: p.text(&to.KeyFile, "keyFile")},
		"bearerTokenFile": {read: func(n *yaml.Node) { token = n; p.text(&to.BearerTokenFile, "bearerTokenFile")(n) }},
		"basicAuth": {read: func(n *yaml.Node) {
			basic = n
			p.mapping(n, "basicAuth", fields{
				"username":     {required: true, read: p.text(&to.Username, "username")},
				"passwordFile": {required: true, read: p.text(&to.PasswordFile, "passwordFile")},
			})
		}},
		"headers": {read: func(n *yaml.Node) { to.Headers = p.headers(n) }},
	})
	if (to.CertFile == "") != (to.KeyFile == "") {
		p.addMistake(n, "%s has one of certFile and keyFile: a client certificate needs both", what)
	}
	if basic != nil && token != nil {
		p.addMistake(basic, "basicAuth and bearerTokenFile exclude each other: leave one out")
	}
	return *to
}

func (p *fileParser) url(n *yaml.Node, to *string) {
	before := len(p.mistakes)
	if p.text(to, "url")(n); len(p.mistakes) > before {
		return
	}
	u, err := url.Parse(*to)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		p.addMistake(n, "url %q is not the URL of a server: write it as http://HOST:PORT or https://HOST:PORT", humanize.URL(*to))
	case u.User != nil:
		p.addMistake(n, "url holds a password: put it in a file and name that in basicAuth: passwordFile")
	case u.RawQuery != "" || u.Fragment != "":
		p.addMistake(n, "url ends in a query or fragment: leave it out, the path of the API is added to it")
	}
}

// maxTimeout is longer than any autoscaler waits.
const maxTimeout = time.Minute

// duration reads the duration called name, of at most longest.
func (p *fileParser) duration(n *yaml.Node, name, example string, longest time.Duration, to *time.Duration) {
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		p.addMistake(n, "%s %s is not a duration: write it with a unit, such as %s", name, valueText(n), example)
	case d <= 0 || d > longest:
		p.addMistake(n, "%s %s is out of range: it must be more than 0 and at most %s", name, n.Value, model.Duration(longest))
	default:
		*to = d
	}
}

// headerName is a token of RFC 9110.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ownHeaders are the headers that weir sets itself.
var ownHeaders = []string{"authorization", "content-type", "content-length", "host", "accept-encoding"}

func (p *fileParser) headers(n *yaml.Node) map[string]string {
	if n.Kind != yaml.MappingNode {
		p.addMistake(n, "headers is %s: write a line NAME: VALUE for each", kindOf(n))
		return nil
	}
	all := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolveAlias(n.Content[i+1])
		switch name := key.Value; {
		case !headerName.MatchString(name):
			p.addMistake(key, "%q is not the name of a header", name)
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			p.addMistake(key, "weir sets the header %s itself: for credentials there are bearerTokenFile and basicAuth", name)
		case value.Kind != yaml.ScalarNode || strings.ContainsFunc(value.Value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			p.addMistake(value, "the value of header %s must be one line of text", name)
		default:
			if _, twice := all[name]; twice {
				p.addMistake(key, "%s is there twice", name)
			}
			all[name] = value.Value
		}
	}
	return all
}

func (p *fileParser) metrics(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.addMistake(n, "metrics is %s: begin each metric with a dash, as in - name: queue_depth", kindOf(n))
		return
	}
	if len(n.Content) == 0 {
		p.addMistake(n, "metrics is empty: begin each metric with a dash, as in - name: queue_depth")
	}
	first := map[ruleID]int{} // the line of each name
	for _, item := range n.Content {
		before := len(p.mistakes)
		m, name := p.metric(resolveAlias(item))
		if name != nil && m.Name != "" {
			if line, twice := first[m.id()]; twice {
				p.addMistake(name, "%s is defined twice, first on line %d: rename one", m.ID(), line)
			} else {
				first[m.id()] = name.Line
			}
		}
		if len(p.mistakes) == before {
			p.rules.Metrics = append(p.rules.Metrics, m)
			continue
		}
		for i := range p.mistakes[before:] {
			p.mistakes[before+i].InRule = true
		}
		p.rules.broken[m.Name] = p.mistakes[before].String()
	}
}

// server reads the name of the server that a rule asks.
func (p *fileParser) server(n *yaml.Node, m *Rule) {
	if p.text(&m.Prometheus, "prometheus")(n); m.Prometheus == "" {
		return
	}
	if _, ok := p.rules.Others[m.Prometheus]; !ok {
		known := slices.Sorted(maps.Keys(p.rules.Others))
		mistake := p.addMistake(n, "prometheuses has no %s: leave prometheus out, or define it there", m.Prometheus)
		mistake.Wrong, mistake.Known = m.Prometheus, known
	}
}

// metricName matches names that are safe in a path and in RBAC.
var metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,252}$`)

// metric reads a rule. name is the node of its name, or nil if there is none.
func (p *fileParser) metric(n *yaml.Node) (m Rule, name *yaml.Node) {
	m.Line = n.Line
	namespaced := true
	var object, overTime *yaml.Node
	given := map[string]*yaml.Node{} // the keys of queries
	p.mapping(n, "a metric", fields{
		"name": {required: true, read: func(n *yaml.Node) {
			name = n
			if p.text(&m.Name, "name")(n); m.Name != "" && !metricName.MatchString(m.Name) {
				p.addMistake(n, "name %q cannot be in a path: begin with a letter, and use letters, digits, _, -, . and :", m.Name)
			}
		}},
		"help":       {read: p.text(&m.Help, "help")},
		"prometheus": {read: func(n *yaml.Node) { given["prometheus"] = n; p.server(n, &m) }},
		"query":      {read: func(n *yaml.Node) { given["query"] = n; p.text(&m.Query, "query")(n) }},
		"overTime":   {read: func(n *yaml.Node) { overTime = n }},
		"for":        {read: func(n *yaml.Node) { object = n }},
		"namespaced": {read: func(n *yaml.Node) { given["namespaced"] = n; p.boolean(&namespaced, "namespaced")(n) }},
		"namespaceLabel": {read: func(n *yaml.Node) {
			given["namespaceLabel"] = n
			if p.text(&m.NamespaceLabel, "namespaceLabel")(n); m.NamespaceLabel != "" && (m.NamespaceLabel == model.MetricNameLabel || !model.UTF8Validation.IsValidLabelName(m.NamespaceLabel)) {
				p.addMistake(n, "namespaceLabel %q is not the name of a label that holds a namespace", m.NamespaceLabel)
			}
		}},
		"selectorMetrics": {read: func(n *yaml.Node) {
			given["selectorMetrics"] = n
			p.list(&m.SelectorMetrics, "selectorMetrics")(n)
		}},
	})
	if object != nil {
		m.Object = p.object(object)
	}
	if overTime != nil {
		p.overTime(&m, overTime, given)
		return m, name
	}
	p.ruleOfQuery(&m, n, given, namespaced)
	return m, name
}

// ruleOfQuery completes a rule with a query, which is at n. given has its keys.
func (p *fileParser) ruleOfQuery(m *Rule, n *yaml.Node, given map[string]*yaml.Node, namespaced bool) {
	query, label := given["query"], given["namespaceLabel"]
	if n.Kind == yaml.MappingNode && valueOf(n, "query") == nil && valueOf(n, "overTime") == nil {
		p.addMistake(n, "a metric has no query and no overTime: add one of them")
	}
	if m.Object != nil {
		namespaced = p.scope(m.Object, namespaced, given["namespaced"])
	}
	switch {
	case !namespaced && label != nil:
		p.addMistake(label, "namespaceLabel means nothing where namespaced is false: leave one of them out")
	case namespaced && label == nil:
		m.NamespaceLabel = DefaultNamespaceLabel
	case !namespaced:
		m.NamespaceLabel = ""
	}
	m.completeLabel()
	if query != nil && m.Query != "" {
		p.query(m, query, given["selectorMetrics"])
	}
}
