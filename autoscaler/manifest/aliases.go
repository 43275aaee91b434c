package manifest

import (
	"bytes"
	"errors"
	"fmt"

	yaml3 "go.yaml.in/yaml/v3"
)

// checkExpandedSize rejects a document if its size with expanded aliases is larger than the limit
// for a manifest. Otherwise a few hundred kilobytes could become gigabytes of JSON, and the process
// would end.
func checkExpandedSize(doc []byte) error {
	if !bytes.ContainsRune(doc, '*') {
		return nil // Fast path: there is no alias
	}
	var root yaml3.Node
	if err := yaml3.Unmarshal(doc, &root); err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if _, err := (nodeSizes{}).of(&root); err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	return nil
}

// nodeSizes has the sizes of nodes with all aliases expanded; -1 while the size is being computed.
type nodeSizes map[*yaml3.Node]int

func (s nodeSizes) of(n *yaml3.Node) (int, error) {
	if n.Kind == yaml3.AliasNode {
		n = n.Alias
	}
	size, known := s[n]
	switch {
	case size < 0:
		return 0, errors.New("an anchor contains itself")
	case known:
		return size, nil
	}
	s[n] = -1
	size = len(n.Value) + 1
	for _, part := range n.Content {
		more, err := s.of(part)
		if err != nil {
			return 0, err
		}
		if size += more; size > MaxBytes {
			return 0, fmt.Errorf("its aliases expand to more than an API server accepts (%d bytes)", MaxBytes)
		}
	}
	s[n] = size
	return size, nil
}
