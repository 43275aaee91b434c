package metricsgroup

import "path/filepath"

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
