package cgroupfs

import "strings"

// Mount is a line of a mountinfo file (proc_pid_mountinfo(5)).
type Mount struct {
	// Device is the device number, such as "0:26".
	Device string
	// Root is the directory of the file system that is mounted. Point is the mount point.
	Root, Point string
	// FileSystem is the type of the file system. Options are its super options.
	FileSystem, Options string
}

// ParseMount parses one line. It returns false if the line is malformed.
func ParseMount(line string) (Mount, bool) {
	before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
	mount, fs := strings.Fields(before), strings.Fields(after)
	if !ok || len(mount) < 6 || len(fs) < 3 {
		return Mount{}, false
	}
	return Mount{Device: mount[2], Root: UnescapePath(mount[3]), Point: UnescapePath(mount[4]), FileSystem: fs[0], Options: fs[2]}, true
}

// UnescapePath replaces the kernel's octal escapes in a path, such as \040 for a space.
func UnescapePath(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1]) && s[i+1] <= '3' && isOctal(s[i+2]) && isOctal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isOctal(c byte) bool { return '0' <= c && c <= '7' }
