// Package statscontainer turns the answer to a POST to /stats/container/ of a
// kubelet before Kubernetes 1.20 into samples: a map of cAdvisor's ContainerInfo,
// by cgroup path, with times in nanoseconds.
//
// Docker's containers could be in it twice, under two paths. Both samples are
// kept, with their own Instance.Path; package identity chooses. The format is
// past, so unlike its siblings this parser uses encoding/json and allocates.
package statscontainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Clock is the resolution of the timestamps.
const Clock = time.Nanosecond

// Query is the body of the POST: every container, its newest values.
const Query = `{"containerName":"/","subcontainers":true,"num_stats":1}`

// The labels Kubernetes puts on containers.
const (
	labelContainer = "io.kubernetes.container.name"
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
)

// Parser turns payloads of one node into samples. It keeps nothing between them but
// which entities there were. It must not be used by two goroutines at once.
type Parser struct{ order payload.Order }

// New returns a Parser that knows no entities yet.
func New() *Parser { return &Parser{} }

// Parse appends the samples in body to b. The error, if any, is a
// *metric.ReadError with NodeBadPayload, and then nothing is appended. It sets b.Layout if
// b held nothing and all samples are within the bound.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	base := len(b.Samples)
	dec := json.NewDecoder(bytes.NewReader(body))
	p.order.Begin(b)
	if err := p.parse(dec, req, b); err != nil {
		b.Samples = b.Samples[:base]
		offset := int(dec.InputOffset())
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = int(syntax.Offset) - 1
		}
		return payload.Bad(body, offset, err.Error())
	}
	p.order.End(b)
	return nil
}

// parse walks the map in its own order, which encoding/json's maps would lose.
func (p *Parser) parse(dec *json.Decoder, req payload.Request, b *metric.Batch) error {
	if t, err := dec.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("not a map of containers")
	}
	containers := 0
	for dec.More() {
		path, err := dec.Token()
		if err != nil {
			return err
		}
		var c info
		if err := dec.Decode(&c); err != nil {
			return err
		}
		if c.Name == "" {
			c.Name, _ = path.(string)
		}
		if !strings.HasPrefix(c.Name, "/") {
			return errors.New("a container whose name is no path")
		}
		containers++
		p.container(&c, req, b)
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if containers == 0 {
		return errors.New("no containers")
	}
	return nil
}

// container appends the samples of one container.
func (p *Parser) container(c *info, req payload.Request, b *metric.Batch) {
	e, in, sandbox := identify(c)
	e.Node = req.Node
	first := len(b.Samples)
	a := adder{req: req, order: &p.order, batch: b, entity: e}
	if len(c.Stats) == 0 {
		return
	}
	newest := &c.Stats[0]
	for i := range c.Stats {
		if c.Stats[i].Timestamp.After(newest.Timestamp) {
			newest = &c.Stats[i]
		}
	}
	if !newest.Timestamp.IsZero() {
		a.time = newest.Timestamp.UnixNano()
	}
	if !sandbox {
		a.usage(c, newest)
	}
	if has(c.Spec.HasNetwork) && newest.Network != nil {
		a.network("", &newest.Network.iface)
		for i := range newest.Network.Interfaces {
			if n := &newest.Network.Interfaces[i]; n.Name != "" {
				a.network("interface:"+n.Name, n)
			}
		}
	}
	for i := first; i < len(b.Samples); i++ {
		b.Samples[i].Instance = in
	}
}

// has reports whether a spec's flag leaves a group in: it was not always there.
func has(flag *bool) bool { return flag == nil || *flag }

// identify returns what a container is. Of a pod's sandbox only the network
// counts, and it is the pod's.
func identify(c *info) (e metric.Entity, in metric.Instance, sandbox bool) {
	in = metric.Instance{Path: metric.CgroupPath(c.Name), Processes: -1}
	if !c.Spec.Created.IsZero() {
		in.Start, in.Origin = c.Spec.Created.UnixNano(), metric.StartReported
	}
	labels := c.Spec.Labels
	pod, name := labels[labelPod], labels[labelContainer]
	switch {
	case c.Name == "/":
		return metric.Entity{Kind: metric.Node}, in, false
	case pod == "" || name == "":
		return metric.Entity{Kind: metric.System, Name: c.Name}, in, false
	}
	in.UID = metric.PodUID(labels[labelUID])
	in.ID = metric.ContainerID(c.ID)
	if c.ID == "" {
		in.ID = metric.ContainerID(c.Name[strings.LastIndexByte(c.Name, '/')+1:])
	}
	e = metric.Entity{Kind: metric.Pod, Namespace: metric.Namespace(labels[labelNamespace]), Pod: metric.PodName(pod)}
	if name == "POD" {
		return e, in, true
	}
	e.Kind, e.Name = metric.Container, name
	return e, in, false
}
