package importcmd

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/weir-metrics/weir/internal/usererror"
)

// adapterConfig is the configuration of prometheus-adapter v0.12.0.
type adapterConfig struct {
	Rules         []adapterRule `yaml:"rules"`
	ExternalRules []adapterRule `yaml:"externalRules"`
	ResourceRules any           `yaml:"resourceRules"`

	resourceLine int // of ResourceRules
}

type adapterRule struct {
	SeriesQuery   string `yaml:"seriesQuery"`
	SeriesFilters []struct {
		Is    string `yaml:"is"`
		IsNot string `yaml:"isNot"`
	} `yaml:"seriesFilters"`
	Resources struct {
		Template  string `yaml:"template"`
		Overrides map[string]struct {
			Group    string `yaml:"group"`
			Resource string `yaml:"resource"`
		} `yaml:"overrides"`
		Namespaced *bool `yaml:"namespaced"`
	} `yaml:"resources"`
	Name struct {
		Matches string `yaml:"matches"`
		As      string `yaml:"as"`
	} `yaml:"name"`
	MetricsQuery string `yaml:"metricsQuery"`

	line int
}

// parseConfig reads the content of a file.
func parseConfig(file string, content []byte) (*adapterConfig, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, yamlError(file, err)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s is not a configuration of prometheus-adapter: it has no rules", file)
	}
	var c adapterConfig
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true) // prometheus-adapter refuses other keys, too
	if err := d.Decode(&c); err != nil {
		return nil, yamlError(file, err)
	}
	root := document.Content[0].Content
	for i := 0; i+1 < len(root); i += 2 {
		key, items := root[i], root[i+1].Content
		switch key.Value {
		case "rules":
			setLines(c.Rules, items)
		case "externalRules":
			setLines(c.ExternalRules, items)
		case "resourceRules":
			c.resourceLine = key.Line
		}
	}
	return &c, nil
}

func setLines(rules []adapterRule, items []*yaml.Node) {
	for i := range min(len(rules), len(items)) {
		rules[i].line = items[i].Line
	}
}

// yamlPlace matches the line in an error of the YAML library, and unknownKey an unknown key.
var (
	yamlPlace  = regexp.MustCompile(`^(?:yaml: )?line (\d+)(?:, column \d+)?: `)
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
)

// yamlError returns the first mistake in a file, with its line.
func yamlError(file string, err error) error {
	text, where := err.Error(), "from about here on, this is not YAML: " // the library gives no exact position
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok && len(wrong.Errors) > 0 {
		text, where = unknownKey.ReplaceAllString(wrong.Errors[0], "unknown key $1"), ""
	}
	line := "1"
	if m := yamlPlace.FindStringSubmatch(text); m != nil {
		line, text = m[1], text[len(m[0]):]
	}
	return usererror.Hintf(fmt.Errorf("%s:%s: %s%s", file, line, where, text), "prometheus-adapter does not read this file either: correct it first.")
}
