package resourcemetrics

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// FuzzString compares quoted strings with encoding/json.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "web-0", `"`, `\`, "<>&", "\x00\x1f\x20\x7e\x7f", "é", "\u2028", "\xff", "a\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString([]byte("x"), s); string(got) != "x"+string(want) {
			t.Errorf("got %s, want x%s", got, want)
		}
	})
}

// If the audit records the response, the library answers, because it has the object.
func TestWholeAudit(t *testing.T) {
	for level, want := range map[auditinternal.Level]bool{
		"": false, auditinternal.LevelNone: false, auditinternal.LevelMetadata: false, auditinternal.LevelRequest: false,
		auditinternal.LevelRequestResponse: true,
	} {
		ctx := audit.WithAuditContext(t.Context())
		if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: level}, nil); err != nil {
			t.Fatal(err)
		}
		if got := auditsResponse(httptest.NewRequestWithContext(ctx, "GET", "/", nil)); got != want {
			t.Errorf("level %q: got %v, want %v", level, got, want)
		}
	}
	if auditsResponse(httptest.NewRequest("GET", "/", nil)) {
		t.Error("nothing audits, yet the answer is wanted")
	}
}
