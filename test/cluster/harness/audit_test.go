//go:build linux

package harness

import (
	"fmt"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func TestParseAudit(t *testing.T) {
	line := func(verb, resource, subresource, name string) string {
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":%q,"user":{"username":"jane"},`+
			`"objectRef":{"resource":%q,"subresource":%q,"namespace":"shop","name":%q,"apiGroup":"apps"},`+
			`"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}`+"\n", verb, resource, subresource, name)
	}
	describe := func(events []auditv1.Event) string {
		var all []string
		for _, e := range events {
			all = append(all, fmt.Sprintf("%s %s %s/%s %s", e.User.Username, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name))
		}
		return strings.Join(all, ", ")
	}
	log := line("patch", "deployments", "scale", "web") + line("create", "deployments", "", "db") + line("update", "deployments", "scale", "db")
	scales := func(e *auditv1.Event) bool { return e.ObjectRef.Subresource == "scale" }
	for _, c := range []struct {
		log   string
		match func(*auditv1.Event) bool
		want  string
	}{
		{"", nil, ""},
		{log, nil, "jane patch deployments/scale web, jane create deployments/ db, jane update deployments/scale db"},
		{log, scales, "jane patch deployments/scale web, jane update deployments/scale db"},
		{strings.TrimSuffix(log, "\n"), scales, "jane patch deployments/scale web"}, // the last is being written
	} {
		got, err := parseAudit([]byte(c.log), c.match)
		if err != nil || describe(got) != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.log, describe(got), err, c.want)
		}
	}
	for _, bad := range []string{"{\n", line("patch", "deployments", "scale", "web") + "x\n", `{"verb":"get"}` + "\n"} {
		if got, err := parseAudit([]byte(bad), nil); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q: got %v, %v; want an error that names the line", bad, got, err)
		}
	}
}
