package rules

import (
	"errors"
	"fmt"
	"io"
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

// Parse reads the content of a file. file is its name in mistakes. The error is a Mistakes with all
// mistakes.
func Parse(file string, content []byte) (*Rules, error) {
	p := &fileParser{file: file, source: strings.Split(string(content), "\n"), rules: &Rules{byName: map[string]*Rule{}}}
	p.read(content)
	if len(p.mistakes) > 0 {
		p.mistakes.sort()
		return nil, p.mistakes
	}
	for i := range p.rules.Metrics {
		p.rules.byName[p.rules.Metrics[i].Name] = &p.rules.Metrics[i]
	}
	return p.rules, nil
}

// fileParser is the state of one Parse.
type fileParser struct {
	file     string
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
	p.mapping(root, "the file", fields{
		"prometheus": {required: true, read: p.prometheus},
		"metrics":    {required: true, read: p.metrics},
	})
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

func (p *fileParser) prometheus(n *yaml.Node) {
	to := &p.rules.Prometheus
	to.Timeout = DefaultTimeout
	var basic, token *yaml.Node
	p.mapping(n, "prometheus", fields{
		"url":             {required: true, read: p.url},
		"timeout":         {read: p.timeout},
		"caFile":          {read: p.text(&to.CAFile, "caFile")},
		"bearerTokenFile": {read: func(n *yaml.Node) { token = n; p.text(&to.BearerTokenFile, "bearerTokenFile")(n) }},
		"basicAuth": {read: func(n *yaml.Node) {
			basic = n
			p.mapping(n, "basicAuth", fields{
				"username":     {required: true, read: p.text(&to.Username, "username")},
				"passwordFile": {required: true, read: p.text(&to.PasswordFile, "passwordFile")},
			})
		}},
		"headers": {read: p.headers},
	})
	if basic != nil && token != nil {
		p.addMistake(basic, "basicAuth and bearerTokenFile exclude each other: leave one out")
	}
}

func (p *fileParser) url(n *yaml.Node) {
	to := &p.rules.Prometheus.URL
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

func (p *fileParser) timeout(n *yaml.Node) {
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		p.addMistake(n, "timeout %s is not a duration: write it with a unit, such as 10s", valueText(n))
	case d <= 0 || d > maxTimeout:
		p.addMistake(n, "timeout %s is out of range: it must be more than 0 and at most %v", n.Value, maxTimeout)
	default:
		p.rules.Prometheus.Timeout = d
	}
}

// headerName is a token of RFC 9110.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ownHeaders are the headers that weir sets itself.
var ownHeaders = []string{"authorization", "content-type", "content-length", "host", "accept-encoding"}

func (p *fileParser) headers(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.addMistake(n, "headers is %s: write a line NAME: VALUE for each", kindOf(n))
		return
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
	p.rules.Prometheus.Headers = all
}

func (p *fileParser) metrics(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.addMistake(n, "metrics is %s: begin each metric with a dash, as in - name: queue_depth", kindOf(n))
		return
	}
	if len(n.Content) == 0 {
		p.addMistake(n, "metrics is empty: begin each metric with a dash, as in - name: queue_depth")
	}
	first := map[string]int{} // the line of each name
	for _, item := range n.Content {
		item = resolveAlias(item)
		m, name := p.metric(item)
		if name == nil || m.Name == "" {
			continue
		}
		if line, twice := first[m.Name]; twice {
			p.addMistake(name, "%s is defined twice, first on line %d: rename one", m.Name, line)
			continue
		}
		first[m.Name] = name.Line
		p.rules.Metrics = append(p.rules.Metrics, m)
	}
}

// metricName matches names that are safe in a path and in RBAC.
var metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,252}$`)

// metric reads a rule. name is the node of its name, or nil if there is none.
func (p *fileParser) metric(n *yaml.Node) (m Rule, name *yaml.Node) {
	m.Line = n.Line
	namespaced := true
	var query, label, selected *yaml.Node
	p.mapping(n, "a metric", fields{
		"name": {required: true, read: func(n *yaml.Node) {
			name = n
			if p.text(&m.Name, "name")(n); m.Name != "" && !metricName.MatchString(m.Name) {
				p.addMistake(n, "name %q cannot be in a path: begin with a letter, and use letters, digits, _, -, . and :", m.Name)
			}
		}},
		"help":       {read: p.text(&m.Help, "help")},
		"query":      {required: true, read: func(n *yaml.Node) { query = n; p.text(&m.Query, "query")(n) }},
		"namespaced": {read: p.boolean(&namespaced, "namespaced")},
		"namespaceLabel": {read: func(n *yaml.Node) {
			label = n
			if p.text(&m.NamespaceLabel, "namespaceLabel")(n); m.NamespaceLabel != "" && (m.NamespaceLabel == model.MetricNameLabel || !model.UTF8Validation.IsValidLabelName(m.NamespaceLabel)) {
				p.addMistake(n, "namespaceLabel %q is not the name of a label that holds a namespace", m.NamespaceLabel)
			}
		}},
		"selectorMetrics": {read: func(n *yaml.Node) { selected = n; p.list(&m.SelectorMetrics, "selectorMetrics")(n) }},
	})
	switch {
	case !namespaced && label != nil:
		p.addMistake(label, "namespaceLabel means nothing where namespaced is false: leave one of them out")
	case namespaced && label == nil:
		m.NamespaceLabel = DefaultNamespaceLabel
	case !namespaced:
		m.NamespaceLabel = ""
	}
	if query != nil && m.Query != "" {
		p.query(&m, query, selected)
	}
	return m, name
}
