package disk

import (
	"bytes"
	"path"
	"strings"
)

// overlay is a mounted overlay file system.
type overlay struct {
	point string // where, as the process whose mountinfo it is sees it
	upper string // its writable layer, in the words of whoever mounted it
}

// parseOverlays returns the overlays of a mountinfo (proc_pid_mountinfo(5)) that are mounted whole
// and have a writable layer with an absolute path. Lines that it cannot read are passed over.
func parseOverlays(mountinfo []byte) []overlay {
	var list []overlay
	for line := range bytes.Lines(mountinfo) {
		if !bytes.Contains(line, []byte(" - overlay ")) {
			continue // fast path: most are other file systems
		}
		mount, fs, _ := strings.Cut(string(line), " - ")
		left, right := strings.Fields(mount), strings.Fields(fs)
		if len(left) < 6 || len(right) < 3 || left[3] != "/" {
			continue
		}
		for option := range strings.SplitSeq(right[2], ",") {
			upper, ok := strings.CutPrefix(option, "upperdir=")
			if upper = unescape(upper); ok && path.IsAbs(upper) {
				list = append(list, overlay{point: unescape(left[4]), upper: path.Clean(upper)})
			}
		}
	}
	return list
}

// unescape reads the kernel's \040 for a space, and the like.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && s[i+1] <= '3' && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// rootLayer is the writable layer of the overlay that is a process's root: the last mounted
// there hides those before it.
func rootLayer(list []overlay) (string, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].point == "/" {
			return list[i].upper, true
		}
	}
	return "", false
}

// below says whether p is a path below dir.
func below(p, dir string) bool { return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }
