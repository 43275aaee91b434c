package metricsgroup

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ReadFile reads a file of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return content, err
}

// IsWithin reports whether a file is in a folder or below it, by their paths. Files of rules and of
// adapters may name such files: their authors choose the servers that get the content.
func IsWithin(file, folder string) (bool, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return false, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return false, err
	}
	relative, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(relative), nil
}
