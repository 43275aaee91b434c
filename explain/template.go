package explain

import "strings"

// template is a sentence with named arguments: "{container} is waiting to start[: {said}]". A part
// in brackets is left out unless all its arguments are known.
type template string

// arguments are the values for a template, by name. An empty one is unknown.
type arguments map[string]string

// render returns the sentence with its arguments, or false if a required argument is unknown.
func (t template) render(a arguments) (string, bool) {
	var text strings.Builder
	rest := string(t)
	for rest != "" {
		i := strings.IndexAny(rest, "{[")
		if i < 0 {
			break
		}
		text.WriteString(rest[:i])
		if rest[i] == '[' {
			part, after, _ := strings.Cut(rest[i+1:], "]")
			if s, ok := template(part).render(a); ok {
				text.WriteString(s)
			}
			rest = after
			continue
		}
		name, after, _ := strings.Cut(rest[i+1:], "}")
		value := a[name]
		if value == "" {
			return "", false
		}
		text.WriteString(value)
		rest = after
	}
	text.WriteString(rest)
	return text.String(), true
}

// first renders the first template with all required arguments known. The last template needs only
// arguments that are always known.
func first(templates []template, a arguments) string {
	for _, t := range templates {
		if s, ok := t.render(a); ok {
			return s
		}
	}
	return ""
}

// nounArguments name the node and its kubelet in a sentence. An empty name gives "the node".
func nounArguments(node string) arguments {
	if node == "" {
		return arguments{"node": "the node", "node's": "the node's", "kubelet": "the kubelet", "container": "the container"}
	}
	return arguments{"node": "node " + node, "node's": "node " + node + "'s", "kubelet": "the kubelet of " + node, "container": "the container"}
}

// pronouns refer to a node that the sentence has already named.
var pronouns = arguments{"node": "it", "node's": "its", "kubelet": "its kubelet", "container": "the container"}
