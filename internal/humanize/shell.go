package humanize

import "strings"

// IsShellWord reports whether a shell takes a word literally, and no command takes it for an option,
// so that a command with it can be pasted.
func IsShellWord(word string) bool {
	return word != "" && !strings.HasPrefix(word, "-") &&
		strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@") == ""
}
