package deploy

import (
	"os"
	"regexp"
	"testing"
)

// TestPoliciesNameResourcesOnce checks that no rule lists other resources beside */*, which an API
// server refuses.
func TestPoliciesNameResourcesOnce(t *testing.T) {
	const file = "kustomize/components/agent/policies.yaml"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range regexp.MustCompile(`resources: \[.*\]`).FindAllString(string(b), -1) {
		if regexp.MustCompile(`"\*/\*"`).MatchString(list) && list != `resources: ["*/*"]` {
			t.Errorf("%s: %s: want only */*, which includes all others", file, list)
		}
	}
}
