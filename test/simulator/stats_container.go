package simulator

// appendStatsContainer appends the answer of POST /stats/container/ with
// {"containerName":"/","subcontainers":true,"num_stats":1}: every cgroup of the
// node by its path, with one reading. The order of two paths of one container
// changes from second to second, as in a kubelet, where it comes from a Go map.
func (n *Node) appendStatsContainer(dst []byte, s *scratch, now int64) []byte {
	w := &writer{b: dst}
	w.open('{')
	seen := n.seen(now)
	at := n.moment(n.key, n.boot, seen)
	group := func(path string, at, cpu, memory, start int64) {
		w.object(path)
		w.string("name", path)
		n.spec(w, start, nil, "")
		w.statistics(n.clock(at), cpu, memory)
		w.end()
	}
	group("/", at, n.countedCPU(at), n.memory(at), n.boot)
	for _, q := range [...]string{"", "BestEffort", "Burstable"} {
		path := n.qosPath(q)
		at := n.moment(n.key.with(path), n.boot, seen)
		group(path, at, n.podsCPU(at, q), n.podsMemory(at, q), n.boot+25*second)
	}
	for _, p := range n.pods {
		if r, ok := p.readPod(now); ok {
			group(p.path(false), r.at, r.cpu, r.memory, r.start)
			if q := holds(p.faults, Duplicate, now); q != nil && q.Style == TwoQoS {
				group(p.path(true), r.at, 0, 0, q.from)
			}
		}
		s.containers = s.containers[:0]
		if r, ok := p.readSandbox(now); ok {
			s.containers = append(s.containers, r)
		}
		for _, c := range p.Containers {
			s.containers = c.read(s.containers, now, true)
		}
		if now/second%2 == 1 {
			for i, j := 0, len(s.containers)-1; i < j; i, j = i+1, j-1 {
				s.containers[i], s.containers[j] = s.containers[j], s.containers[i]
			}
		}
		for i := range s.containers {
			r := &s.containers[i]
			path := r.path()
			w.object(path)
			w.string("id", r.run.id())
			w.string("name", path)
			name := "POD"
			if r.container != nil {
				name = r.container.Name
			}
			n.spec(w, r.start, p, name)
			w.statistics(r.stamp, r.cpu, r.memory)
			w.end()
		}
	}
	w.end()
	return w.b
}

func (n *Node) spec(w *writer, start int64, p *Pod, container string) {
	w.object("spec")
	w.exactTime("creation_time", start)
	if p != nil {
		w.object("labels")
		w.string("io.kubernetes.container.name", container)
		w.string("io.kubernetes.pod.name", p.Name)
		w.string("io.kubernetes.pod.namespace", p.Namespace)
		w.string("io.kubernetes.pod.uid", p.ReportedUID())
		w.end()
	}
	w.bool("has_cpu", true)
	w.bool("has_memory", true)
	w.end()
}

func (w *writer) statistics(stamp, cpu, memory int64) {
	w.array("stats")
	w.item()
	w.exactTime("timestamp", stamp)
	w.object("cpu")
	w.object("usage")
	w.int("total", cpu)
	w.end()
	w.end()
	w.object("memory")
	w.int("usage", memory+memory/16/page*page)
	w.int("working_set", memory)
	w.end()
	w.end()
	w.endArray()
}
