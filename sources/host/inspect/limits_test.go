package inspect

import (
	"encoding/json"
	"testing"

	"github.com/weir-metrics/weir/test/transcript"
)

// TestLimitsAsJSON checks the names by which programs read limits. weir resize apply compares the
// limits with the resized containers.
func TestLimitsAsJSON(t *testing.T) {
	for kind, c := range map[string]struct{ words, want string }{
		"v1": {
			"cpu.shares=102 cpu.cfs_quota_us=10000 cpu.cfs_period_us=100000 memory.limit_in_bytes=9223372036854771712",
			`{"shares":102,"quotaMicroseconds":10000,"periodMicroseconds":100000,"memoryLimitBytes":-1}`,
		},
		"v2": {
			"cpu.weight=4 cpu.max=max,100000 memory.max=67108864",
			`{"weight":4,"quotaMicroseconds":-1,"periodMicroseconds":100000,"memoryLimitBytes":67108864}`,
		},
		// Version 2 is mounted in addition to version 1, and neither has limits here.
		"hybrid": {"pids=101", `null`},
	} {
		f := newFixture(t, kind)
		f.add("/kubepods/burstable/pod$A/#1 " + c.words)
		tree, err := f.inspector("/").Read()
		if err != nil || len(tree.Problems) > 0 {
			t.Fatalf("%s: %v %v", kind, err, tree.Problems)
		}
		r := Judge(tree, nil, transcript.Epoch)
		got, err := json.Marshal(r.Pods[0].Containers[0].Limits)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s: limits are %s, want %s", kind, got, c.want)
		}
		if r.Pods[0].Limits != nil {
			t.Errorf("%s: the pod's cgroup, without files, has limits %+v", kind, *r.Pods[0].Limits)
		}
	}
}
