package simulator

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

var (
	namespaces = [...]string{"shop", "data", "payments", "search", "media"}
	apps       = [...]string{"web", "cart", "checkout", "catalogue", "invoice", "mailer", "search", "thumbs", "ledger", "orders", "stock", "feed", "login", "export", "quotes", "billing"}
	// containerNames are the names of a pod's containers, in order.
	containerNames = [...]string{"app", "proxy", "log-shipper", "metrics", "sync"}
)

// suffixAlphabet has the characters that Kubernetes uses for name suffixes: it
// has no vowels, so that suffixes are not words.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

func (k key) suffix(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(suffixAlphabet[k.num(int64(i)).between("letter", 0, int64(len(suffixAlphabet)))])
	}
	return b.String()
}

// uid returns a random-looking version 4 UUID.
func (k key) uid() string {
	a, b := uint64(k.with("uid a")), uint64(k.with("uid b"))
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// hash returns 32 hexadecimal digits, as the kubelet hashes a manifest.
func (k key) hash() string { return string(k.appendHash(make([]byte, 0, 32))) }

// id returns a container ID of 64 hexadecimal digits.
func (k key) id() string {
	return string(k.with("id b").appendHash(k.with("id a").appendHash(make([]byte, 0, 64))))
}

func (k key) appendHash(dst []byte) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(k.with("hash a")))
	binary.BigEndian.PutUint64(b[8:], uint64(k.with("hash b")))
	return hex.AppendEncode(dst, b[:])
}

func containerName(i int) string {
	if i < len(containerNames) {
		return containerNames[i]
	}
	return fmt.Sprintf("side-%d", i-len(containerNames)+1)
}

// owner is the owner of a pod: its kind and name.
type owner struct{ kind, name string }

// templateHash returns the label pod-template-hash of an owner's pods; empty if
// they have none.
func (o owner) templateHash() string {
	if o.kind != "ReplicaSet" {
		return ""
	}
	return o.name[strings.LastIndexByte(o.name, '-')+1:]
}

// nameOf returns the namespace, name and owner of the pth pod of a node: the
// first belongs to a DaemonSet, the second is a static pod, then every fifth
// belongs to a StatefulSet and all others to Deployments. If the name is taken,
// another attempt gives another suffix.
func nameOf(k key, node string, index, p, attempt int) (namespace, name string, of owner) {
	switch {
	case p == 0:
		return "kube-system", "node-agent-" + k.num(int64(attempt)).suffix(5), owner{"DaemonSet", "node-agent"}
	case p == 1:
		return "kube-system", "kube-proxy-" + node, owner{"Node", node}
	}
	app := apps[(p*7+index)%len(apps)]
	namespace = namespaces[(p*3+index/len(apps))%len(namespaces)]
	if p%5 == 4 {
		// The name is unique: p gives the set's name, and the node's index gives the
		// ordinal.
		set := fmt.Sprintf("%s-store-%d", apps[p%len(apps)], p/5)
		return namespaces[p%len(namespaces)], fmt.Sprintf("%s-%d", set, index), owner{"StatefulSet", set}
	}
	replicaSet := app + "-" + key(0).with(namespace).with(app).suffix(10)
	return namespace, replicaSet + "-" + k.num(int64(attempt)).suffix(5), owner{"ReplicaSet", replicaSet}
}
