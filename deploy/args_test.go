package deploy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestArgumentsAreAccepted runs the command with the arguments of the manifests. Outside of a
// cluster it must fail, but not because of its arguments.
func TestArgumentsAreAccepted(t *testing.T) {
	weir := filepath.Join(t.TempDir(), "weir")
	build := exec.Command("go", "build", "-o", weir, "../cmd/weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build weir: %v\n%s", err, out)
	}
	run := func(t *testing.T, c corev1.Container) {
		t.Helper()
		var args []string
		for _, a := range c.Args {
			a = strings.Replace(expand(t, a, c.Env), "/etc/weir/adapters/", filepath.Join(root, "components", "adapters")+"/", 1) // weir reads it at once
			args = append(args, a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, weir, args...)
		// The process is not in a pod, but has the environment variables of one.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NODE_NAME=n1", "POD_UID=u1", "POD_NAME=weir-1", "POD_NAMESPACE=weir-system", "POD_IP=10.0.0.1"}
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("weir %q goes on without a cluster:\n%s", args, out)
		}
		if err == nil || !bytes.Contains(out, []byte("unable to load in-cluster configuration")) {
			t.Errorf("weir %q: %v, want that it finds no cluster:\n%s", args, err, out)
		}
	}
	each(t, func(t *testing.T, s set) {
		if s.deployment != nil {
			run(t, s.deployment.Spec.Template.Spec.Containers[0])
		}
		if s.agents != nil {
			run(t, s.agents.Spec.Template.Spec.Containers[0])
		}
	})
}

// TestServedAPIs checks that a server serves the APIs of the cluster whose APIServices lead to it, and
// no others: the cluster's OpenAPI shows all that it serves.
func TestServedAPIs(t *testing.T) {
	groups := map[string]string{"resource": "metrics.k8s.io", "custom": "custom.metrics.k8s.io", "external": "external.metrics.k8s.io"}
	each(t, func(t *testing.T, s set) {
		if s.deployment == nil {
			return
		}
		served := map[string]bool{}
		for _, arg := range s.deployment.Spec.Template.Spec.Containers[0].Args {
			if names, ok := strings.CutPrefix(arg, "--apis="); ok {
				for name := range strings.SplitSeq(names, ",") {
					served[name] = true
				}
			}
		}
		for name, group := range groups {
			registered := slices.ContainsFunc(s.apiServices, func(a *apiService) bool { return a.Spec.Group == group })
			if registered != served[name] {
				t.Errorf("%s: registered %t, served %t", group, registered, served[name])
			}
		}
	})
}

var variable = regexp.MustCompile(`\$\((\w+)\)`)

// expand replaces references to environment variables in an argument, as the kubelet does. It
// leaves unknown references unchanged.
func expand(t *testing.T, arg string, env []corev1.EnvVar) string {
	return variable.ReplaceAllStringFunc(arg, func(v string) string {
		name := v[2 : len(v)-1]
		for _, e := range env {
			if e.Name == name && e.ValueFrom != nil {
				return "of-the-pod"
			}
			if e.Name == name {
				return e.Value
			}
		}
		t.Errorf("argument %s: no variable %s in the container's env", arg, name)
		return v
	})
}
