package adapters

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Adapter is an entry of the file.
type Adapter struct {
	// Name is the adapter in errors, logs and metrics. It is a DNS label.
	Name string `yaml:"name"`
	// URL is the adapter's address, https://HOST:PORT. In a cluster that is its Service.
	URL string `yaml:"url"`
	// Scaler is the address of an external scaler of KEDA's protocol, HOST:PORT. It takes the place of URL.
	Scaler string `yaml:"scaler"`
	// ScaledObject and Metadata describe to the scaler who asks: the name of a ScaledObject, by
	// default that of the entry, and the metadata of its trigger.
	ScaledObject string            `yaml:"scaledObject"`
	Metadata     map[string]string `yaml:"metadata"`
	// IsActive reports whether the scaler's IsActive changes its values: they are 0 while it is not active, and
	// more than 0 while it is.
	IsActive bool `yaml:"isActive"`
	// CAFile has the certificates to trust. If it is empty, the system's are trusted, and a scaler is asked
	// without TLS.
	CAFile string `yaml:"caFile"`
	// CertFile and KeyFile are weir's certificate for the adapter; empty for none.
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
	// BearerTokenFile has the token that the adapter is shown. It is read for each request.
	BearerTokenFile string `yaml:"bearerTokenFile"`
	// Timeout bounds one request. Default DefaultTimeout.
	Timeout time.Duration `yaml:"timeout"`
	// Custom and External are the metrics that the adapter answers, as names with * and ? as in
	// path.Match. At least one of them must be given.
	Custom   []string `yaml:"custom"`
	External []string `yaml:"external"`
	// Namespaces are those whose requests the adapter answers. Default: all, and requests without one.
	Namespaces []string `yaml:"namespaces"`
	// SelectorLabel is a label that the metric selector of a request must require, such as
	// scaledobject.keda.sh/name. Default: none.
	SelectorLabel string `yaml:"selectorLabel"`
}

// DefaultTimeout is the timeout of an adapter. An HPA asks every 15 s.
const DefaultTimeout = 5 * time.Second

// The most that a file may have.
const (
	maxTimeout  = 30 * time.Second
	maxAdapters = 32
	maxSize     = 1 << 20
)

// ReadFile returns the adapters of a file. Files that an entry names are in the folder of the file, or
// among mayName: the author of the file chooses the server that gets their content, and often is not
// weir's administrator.
func ReadFile(file string, mayName []string) ([]Adapter, error) {
	content, err := metricsgroup.ReadFile(file, maxSize)
	if err != nil {
		return nil, fmt.Errorf("read the file of adapters: %w", err)
	}
	all, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range all {
		for _, named := range []*string{&all[i].CAFile, &all[i].CertFile, &all[i].KeyFile, &all[i].BearerTokenFile} {
			if err := resolveFile(named, filepath.Dir(file), mayName); err != nil {
				return nil, fmt.Errorf("%s: adapter %s: %w", file, all[i].Name, err)
			}
		}
	}
	return all, nil
}

// parse returns the adapters that content describes.
func parse(content []byte) ([]Adapter, error) {
	var document struct {
		Adapters []Adapter `yaml:"adapters"`
	}
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	if err := d.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.NewReplacer("yaml: ", "", "unmarshal errors:\n  ", "", " in type adapters.Adapter", "").Replace(err.Error()))
	}
	all := document.Adapters
	switch {
	case len(all) == 0:
		return nil, errors.New("it names no adapter: begin each one with a dash below adapters:, as in - name: keda")
	case len(all) > maxAdapters:
		return nil, fmt.Errorf("it names %d adapters, and at most %d are allowed", len(all), maxAdapters)
	}
	var failed []error
	for i := range all {
		if err := all[i].validate(); err != nil {
			failed = append(failed, err)
		}
		if slices.ContainsFunc(all[:i], func(a Adapter) bool { return a.Name == all[i].Name }) {
			failed = append(failed, fmt.Errorf("adapter %s is there twice: rename one", all[i].Name))
		}
	}
	return all, errors.Join(failed...)
}

// validate sets defaults and returns what is wrong with an entry.
func (a *Adapter) validate() error {
	if len(validation.IsDNS1123Label(a.Name)) > 0 {
		return fmt.Errorf("adapter %q: the name must be lower-case letters, digits and dashes, as in name: keda", a.Name)
	}
	a.Timeout = cmp.Or(a.Timeout, DefaultTimeout)
	wrong := a.checkAddress()
	switch {
	case wrong != "":
	case (a.CertFile == "") != (a.KeyFile == ""):
		wrong = "it has one of certFile and keyFile: a client certificate needs both"
	case a.Timeout < 0 || a.Timeout > maxTimeout:
		wrong = fmt.Sprintf("timeout %v is out of range: it must be more than 0 and at most %v", a.Timeout, maxTimeout)
	case len(a.Custom) == 0 && len(a.External) == 0:
		wrong = `it answers nothing: name metrics in custom or external, as in external: ["queue_*"]`
	case a.SelectorLabel != "" && len(validation.IsQualifiedName(a.SelectorLabel)) > 0:
		wrong = fmt.Sprintf("selectorLabel %q is not the name of a label", a.SelectorLabel)
	}
	for _, pattern := range slices.Concat(a.Custom, a.External) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			wrong = fmt.Sprintf("%q is not a pattern of names: use letters, * and ?", pattern)
		}
	}
	if wrong != "" {
		return fmt.Errorf("adapter %s: %s", a.Name, wrong)
	}
	return nil
}

// checkAddress returns what is wrong with the address of an entry and with what depends on it; empty for
// nothing.
func (a *Adapter) checkAddress() string {
	if a.Scaler != "" {
		a.ScaledObject = cmp.Or(a.ScaledObject, a.Name)
		return a.checkScaler()
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Sprintf("url %q is not the address of an adapter: write https://HOST:PORT", humanize.URL(a.URL))
	case a.ScaledObject != "" || len(a.Metadata) > 0 || a.IsActive:
		return "scaledObject, metadata and isActive are for external scalers: write scaler: HOST:PORT, or leave them out"
	}
	return ""
}

// resolveFile resolves a named file in the folder of the file of adapters. It returns an error if the
// entry may not name it.
func resolveFile(named *string, folder string, mayName []string) error {
	if *named == "" || slices.Contains(mayName, *named) {
		return nil
	}
	file := *named
	if !filepath.IsAbs(file) {
		file = filepath.Join(folder, file)
	}
	switch allowed, err := metricsgroup.IsWithin(file, folder); {
	case err != nil:
		return fmt.Errorf("find %s: %w", *named, err)
	case !allowed:
		return fmt.Errorf("it names %s, which is outside the folder %s: move it there, or give --adapters-file=%[1]s too", *named, folder)
	}
	*named = file
	return nil
}

// takes reports whether a pattern matches the name of a metric.
func takes(patterns []string, metric string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, metric)
		return ok
	})
}

// takesNamespace reports whether the adapter answers requests of a namespace; empty for none.
func (a *Adapter) takesNamespace(namespace string) bool {
	return len(a.Namespaces) == 0 || slices.Contains(a.Namespaces, namespace)
}
