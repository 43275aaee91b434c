package simulator

import (
	"strconv"
	"strings"
)

// TargetsFile returns the nodes in the format that weir reads from a file:
// NAME=HOST:PORT, one on each line.
func (f *Fleet) TargetsFile(port int) []byte {
	var b []byte
	for _, n := range f.nodes {
		b = append(n.appendTarget(b, port), '\n')
	}
	return b
}

// Source returns the value of weir's --source that reads this fleet.
// targetsFile is a file with the content of TargetsFile. If it is empty, the
// value lists the nodes, or gives the range of their addresses if nodes are
// named by address. The fleet is served with TLS unless insecure is set; caFile
// is the authority's certificate.
func (f *Fleet) Source(port int, targetsFile, caFile string, insecure bool) string {
	var b strings.Builder
	b.WriteString("kubelet:?targets=")
	switch last := f.nodes[len(f.nodes)-1]; {
	case targetsFile != "":
		b.WriteString("@" + targetsFile)
	case f.options.NamesAreAddresses && len(f.nodes) > 1:
		b.WriteString(f.nodes[0].Name + "-" + last.Name + ":" + strconv.Itoa(port))
	default:
		for i, n := range f.nodes {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(n.appendTarget(nil, port))
		}
	}
	switch {
	case insecure:
		b.WriteString("&scheme=http")
	case caFile != "":
		b.WriteString("&ca=" + caFile)
	default:
		b.WriteString("&insecure-tls=true")
	}
	return b.String()
}

func (n *Node) appendTarget(b []byte, port int) []byte {
	b = append(b, n.Name...)
	b = append(b, '=')
	b = n.Address.AppendTo(b)
	b = append(b, ':')
	return strconv.AppendInt(b, int64(port), 10)
}
