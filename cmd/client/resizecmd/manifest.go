package resizecmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
)

// maxManifest is the largest file of manifests that is read, in bytes.
const maxManifest = 10 << 20

// writeDiff writes a unified diff that changes the requests in a file of manifests to the proposed ones. All
// other text stays as it is, with comments and order. What cannot be changed there is written to notes, with its
// line.
func (r *recommendCommand) writeDiff(out, notes io.Writer, list *resizeapi.RecommendationList, namespace string) error {
	m, err := readManifest(r.manifest)
	if err != nil {
		return err
	}
	for _, w := range m.workloads {
		if w.namespace != "" && namespace != "" && w.namespace != namespace {
			m.note(w.line, "%s is of namespace %s: ask with -n %[2]s, or -A", w, w.namespace)
			continue
		}
		m.change(w, recommendationOf(list, w, namespace))
	}
	slices.SortStableFunc(m.notes, func(a, b note) int { return cmp.Compare(a.line, b.line) })
	for _, n := range m.notes {
		fmt.Fprintf(notes, "%s:%d: %s\n", r.manifest, n.line, n.text)
	}
	if len(m.edits) == 0 {
		fmt.Fprintf(notes, "No request in %s is to change.\n", r.manifest)
		return nil
	}
	_, err = io.WriteString(out, m.diff())
	return err
}

// recommendationOf returns the recommendation for a workload of a manifest; nil if there is none. Manifests
// without a namespace are for the one that was asked for.
func recommendationOf(list *resizeapi.RecommendationList, w *workloadManifest, namespace string) *resize.PodRecommendation {
	i := slices.IndexFunc(list.Items, func(rec *resize.PodRecommendation) bool {
		return rec.Workload.Kind == w.kind && rec.Workload.Name == w.name && rec.Namespace == cmp.Or(w.namespace, namespace, rec.Namespace)
	})
	if i < 0 {
		return nil
	}
	return list.Items[i]
}

// manifest is a file of manifests, and how it is to change.
type manifest struct {
	path      string
	lines     []string       // each with its end
	edits     map[int][]edit // by the index of their line
	workloads []*workloadManifest
	notes     []note
}

// edit replaces the characters of a line from one column up to another.
type edit struct {
	from, to int
	text     string
}

// note states what cannot be changed in a line.
type note struct {
	line int
	text string
}

// workloadManifest is a workload of a file.
type workloadManifest struct {
	kind, namespace, name string
	line                  int
	pod                   *yaml.Node // the spec of its pod template
}

// String returns kind/name as kubectl takes it.
func (w *workloadManifest) String() string { return strings.ToLower(w.kind) + "/" + w.name }

// readManifest reads a file of one or more YAML documents.
func readManifest(path string) (*manifest, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read manifests: %w", err)
	case len(text) > maxManifest:
		return nil, fmt.Errorf("read manifests: %s has more than %s", path, humanize.Bytes(maxManifest))
	}
	m := &manifest{path: path, lines: strings.SplitAfter(string(text), "\n"), edits: map[int][]edit{}}
	for documents := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var document yaml.Node
		switch err := documents.Decode(&document); {
		case errors.Is(err, io.EOF) && len(m.workloads) == 0:
			return nil, fmt.Errorf("%s has no workload: a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob", path)
		case errors.Is(err, io.EOF):
			return m, nil
		case err != nil:
			return nil, cli.Hintf(fmt.Errorf("read %s: %w", path, err), "A template, as of Helm, becomes YAML when it is rendered: -o patch has the requests to write into it.")
		}
		for _, root := range document.Content {
			m.addWorkloads(root)
		}
	}
}

// addWorkloads adds the workload of an object, or those of a List.
func (m *manifest) addWorkloads(object *yaml.Node) {
	kind := textOf(object, "kind")
	if kind == "List" {
		if items := field(object, "items"); items != nil {
			for _, item := range items.Content {
				m.addWorkloads(item)
			}
		}
		return
	}
	if _, ok := templateKinds[kind]; !ok {
		return
	}
	path := []string{"spec", "template", "spec"}
	if kind == "CronJob" {
		path = slices.Concat([]string{"spec", "jobTemplate"}, path)
	}
	m.workloads = append(m.workloads, &workloadManifest{kind, textOf(object, "metadata", "namespace"), textOf(object, "metadata", "name"), object.Line, field(object, path...)})
}

// field returns the value at a path of keys; nil if there is none.
func field(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var value *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				value = n.Content[i+1]
			}
		}
		n = value
	}
	return n
}

func textOf(n *yaml.Node, path ...string) string {
	if v := field(n, path...); v != nil {
		return v.Value
	}
	return ""
}

// change changes the requests of a workload to those of rec, which is nil if there is no recommendation.
func (m *manifest) change(w *workloadManifest, rec *resize.PodRecommendation) {
	if rec == nil {
		m.note(w.line, "there is no recommendation for %s: no pods of it are known", w)
		return
	}
	for i := range rec.Requests {
		a := &rec.Requests[i]
		if a.Proposed == nil {
			continue
		}
		owner, at, line := w.pod, "the pod", w.line
		if a.Container != "" {
			owner, at = w.container(a), "container "+a.Container
		}
		if owner != nil {
			line = owner.Line
		}
		m.setQuantity(owner, line, at, "requests", string(a.Resource), a.Request, a.Proposed)
		if a.ProposedLimit != nil {
			m.setQuantity(owner, line, at, "limits", string(a.Resource), a.Limit, a.ProposedLimit)
		}
	}
}

// container returns the container that an advice is about; nil if the manifest does not have it.
func (w *workloadManifest) container(a *resize.Advice) *yaml.Node {
	list := "containers"
	if a.Sidecar {
		list = "initContainers"
	}
	containers := field(w.pod, list)
	if containers == nil {
		return nil
	}
	for _, c := range containers.Content {
		if textOf(c, "name") == a.Container {
			return c
		}
	}
	return nil
}

// setQuantity replaces a quantity in the resources of a container or a pod. at is its name, in line. The
// quantity must be what the cluster has.
func (m *manifest) setQuantity(owner *yaml.Node, line int, at, list, name string, from, to *resource.Quantity) {
	value := field(owner, "resources", list, name)
	if value == nil {
		m.note(line, "%s has no resources.%s.%s here, to be changed to %s: something else sets it", at, list, name, to)
		return
	}
	if value.Kind != yaml.ScalarNode {
		m.note(value.Line, "%s.%s of %s is not written here: change it to %s where it is", list, name, at, to)
		return
	}
	if written, err := resource.ParseQuantity(value.Value); err != nil || from == nil || written.Cmp(*from) != 0 {
		m.note(value.Line, "%s.%s of %s is %s here and %s in the cluster: apply the file first", list, name, at, value.Value, cmp.Or(quantityText(from), "missing"))
		return
	}
	if !m.replace(value, to.String()) {
		m.note(value.Line, "%s.%s of %s cannot be changed in this line: write %s", list, name, at, to)
	}
}

func quantityText(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}

func (m *manifest) note(line int, format string, args ...any) {
	m.notes = append(m.notes, note{line, fmt.Sprintf(format, args...)})
}

// replace replaces a scalar in its line, with its quotes if it has any. It returns false if the line does not
// have it as it is parsed, as with an anchor.
func (m *manifest) replace(value *yaml.Node, text string) bool {
	index := value.Line - 1
	if index >= len(m.lines) {
		return false
	}
	line := []rune(m.lines[index])
	for _, quote := range []string{"", `"`, "'"} {
		from := []rune(quote + value.Value + quote)
		if at := value.Column - 1; at+len(from) <= len(line) && slices.Equal(line[at:at+len(from)], from) {
			m.edits[index] = append(m.edits[index], edit{at, at + len(from), quote + text + quote})
			return true
		}
	}
	return false
}

// edited returns a line with its edits.
func (m *manifest) edited(index int) string {
	edits := m.edits[index]
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) }) // the columns on the left stay
	line := []rune(m.lines[index])
	for _, e := range edits {
		line = slices.Replace(line, e.from, e.to, []rune(e.text)...)
	}
	return string(line)
}

// diff returns the unified diff.
func (m *manifest) diff() string {
	const context = 3
	lines := m.lines
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	name := filepath.ToSlash(m.path)
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", strings.TrimPrefix(name, "/"), strings.TrimPrefix(name, "/"))
	write := func(sign, line string) {
		b.WriteString(sign + line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for next := 0; next < len(lines); {
		if len(m.edits[next]) == 0 {
			next++
			continue
		}
		first, end := max(next-context, 0), next+1
		for i := next; i < min(end+2*context, len(lines)); i++ {
			if len(m.edits[i]) > 0 {
				end = i + 1
			}
		}
		next, end = end, min(end+context, len(lines))
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", first+1, end-first, first+1, end-first)
		for i := first; i < end; {
			from := i
			for ; i < end && len(m.edits[i]) > 0; i++ {
				write("-", lines[i])
			}
			for n := from; n < i; n++ {
				write("+", m.edited(n))
			}
			if i < end {
				write(" ", lines[i])
				i++
			}
		}
	}
	return b.String()
}
