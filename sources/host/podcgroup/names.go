package podcgroup

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// NormalizeUID returns a pod UID as the API server writes it, lower case and
// with dashes, from any spelling cgroup paths use, and whether s can be one.
//
// A UID of 32 digits without dashes stays so: it is the hash of a static pod's
// manifest, which the API server shows without dashes too (annotation
// kubernetes.io/config.hash), and with dashes it would match nothing.
func NormalizeUID(s string) (metric.PodUID, bool) {
	if s == "" {
		return "", false
	}
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_') {
			return "", false
		}
	}
	return metric.PodUID(strings.ReplaceAll(strings.ToLower(s), "_", "-")), true
}

// parseContainer reads a container's own component: "<id>",
// "<runtime>-<id>" or "<runtime>-<id>.scope".
func parseContainer(part string) (runtime string, id metric.ContainerID, ok bool) {
	part = strings.TrimSuffix(part, ".scope")
	if at := strings.LastIndexByte(part, '-'); at >= 0 {
		runtime, part = part[:at], part[at+1:]
		if !isRuntime(runtime) {
			return "", "", false
		}
	}
	if !isID(part) {
		return "", "", false
	}
	return runtime, metric.ContainerID(part), true
}

// isRuntime reports whether s can be a runtime's prefix. A conmon is CRI-O's
// or Podman's helper process, which has the ID of the container it watches.
func isRuntime(s string) bool {
	if s == "" || strings.HasSuffix(s, "conmon") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// idLength is how many hexadecimal digits a container ID has, in every runtime
// that serves a kubelet.
const idLength = 64

func isID(s string) bool {
	if len(s) != idLength {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}
