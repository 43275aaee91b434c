package simulator

import "strconv"

// appendResource appends the answer of /metrics/resource.
func (n *Node) appendResource(dst []byte, s *scratch, now int64) []byte {
	s.containers, s.pods = s.containers[:0], s.pods[:0]
	for i := 0; i < len(n.byContainer); {
		group := len(s.containers)
		c := n.byContainer[i]
		for ; i < len(n.byContainer) && sameName(c, n.byContainer[i]); i++ {
			s.containers = n.byContainer[i].read(s.containers, now, false)
		}
		sortByStamp(s.containers[group:])
	}
	for i := 0; i < len(n.byPod); {
		group := len(s.pods)
		p := n.byPod[i]
		for ; i < len(n.byPod) && n.byPod[i].Name == p.Name && n.byPod[i].Namespace == p.Namespace; i++ {
			if r, ok := n.byPod[i].readPod(now); ok {
				s.pods = append(s.pods, r)
			}
		}
		sortByStamp(s.pods[group:])
	}

	type value func(r *reading) int64
	zero := value(func(*reading) int64 { return 0 })
	memory := value(func(r *reading) int64 { return r.memory })

	dst = appendHeader(dst, "container_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the container in core-seconds", "counter")
	for i := range s.containers {
		r := &s.containers[i]
		dst = appendContainer(dst, "container_cpu_usage_seconds_total", r.container)
		dst = appendFloat(dst, float64(r.cpu)/1e9)
		dst = appendStamp(dst, r.stamp)
	}
	containers := func(name, help string, v value, only func(*reading) bool) {
		dst = appendHeader(dst, name, help, "gauge")
		for i := range s.containers {
			r := &s.containers[i]
			if only != nil && !only(r) {
				continue
			}
			dst = appendContainer(dst, name, r.container)
			dst = appendFloat(dst, float64(v(r)))
			dst = appendStamp(dst, r.stamp)
		}
	}
	pods := func(name, help, typ string, v value, unit float64) {
		dst = appendHeader(dst, name, help, typ)
		for i := range s.pods {
			r := &s.pods[i]
			dst = append(dst, name...)
			dst = append(dst, `{namespace="`...)
			dst = append(dst, r.pod.Namespace...)
			dst = append(dst, `",pod="`...)
			dst = append(dst, r.pod.Name...)
			dst = append(dst, `"} `...)
			dst = appendFloat(dst, float64(v(r))/unit)
			dst = appendStamp(dst, r.stamp)
		}
	}
	containers("container_memory_working_set_bytes", "[STABLE] Current working set of the container in bytes", memory, nil)
	dst = n.appendStarts(dst, s.containers, now)
	if limited := func(r *reading) bool { return r.container.limits.memoryLimit > 0 }; anyOf(s.containers, limited) {
		containers("container_swap_limit_bytes", "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems",
			func(r *reading) int64 {
				if r.zero {
					return 0
				}
				return r.container.limits.memoryLimit
			}, limited)
	}
	containers("container_swap_usage_bytes", "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems", zero, nil)

	at := n.moment(n.key, n.boot, n.seen(now))
	node := func(name, help, typ string, v float64) {
		dst = appendHeader(dst, name, help, typ)
		dst = append(dst, name...)
		dst = append(dst, ' ')
		dst = appendFloat(dst, v)
		dst = appendStamp(dst, n.clock(at))
	}
	node("node_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the node in core-seconds", "counter", float64(n.countedCPU(at))/1e9)
	node("node_memory_working_set_bytes", "[STABLE] Current working set of the node in bytes", "gauge", float64(n.memory(at)))
	node("node_swap_usage_bytes", "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems", "gauge", 0)

	pods("pod_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds", "counter", func(r *reading) int64 { return r.cpu }, 1e9)
	pods("pod_memory_working_set_bytes", "[STABLE] Current working set of the pod in bytes", "gauge", memory, 1)
	pods("pod_swap_usage_bytes", "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems", "gauge", zero, 1)
	dst = appendHeader(dst, "resource_scrape_error", scrapeErrorHelp, "gauge")
	return append(dst, "resource_scrape_error 0\n"...)
}

const scrapeErrorHelp = "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"

// appendStarts appends one start line for each name. A start line has no
// timestamp and no label that distinguishes two instances, so a kubelet can
// report only one of them, and nothing says which.
func (n *Node) appendStarts(dst []byte, rs []reading, now int64) []byte {
	dst = appendHeader(dst, "container_start_time_seconds", "[STABLE] Start time of the container since unix epoch in seconds", "gauge")
	for i := 0; i < len(rs); {
		j := i + 1
		for j < len(rs) && sameName(rs[i].container, rs[j].container) {
			j++
		}
		r := &rs[i]
		if j > i+1 {
			r = &rs[i+int(r.pod.key.num(now/second).between("start of", 0, int64(j-i)))]
		}
		dst = appendContainer(dst, "container_start_time_seconds", r.container)
		dst = appendFloat(dst, float64(r.start)/1e9)
		dst = append(dst, '\n')
		i = j
	}
	return dst
}

func sameName(a, b *Container) bool {
	return a.Name == b.Name && a.Pod.Name == b.Pod.Name && a.Pod.Namespace == b.Pod.Namespace
}

// sortByStamp sorts lines of one name as a kubelet does. There is seldom more
// than one.
func sortByStamp(rs []reading) {
	for i := 1; i < len(rs); i++ {
		for j := i; j > 0 && rs[j].stamp < rs[j-1].stamp; j-- {
			rs[j], rs[j-1] = rs[j-1], rs[j]
		}
	}
}

func anyOf(rs []reading, is func(*reading) bool) bool {
	for i := range rs {
		if is(&rs[i]) {
			return true
		}
	}
	return false
}

func appendHeader(dst []byte, name, help, typ string) []byte {
	dst = append(dst, "# HELP "...)
	dst = append(dst, name...)
	dst = append(dst, ' ')
	dst = append(dst, help...)
	dst = append(dst, "\n# TYPE "...)
	dst = append(dst, name...)
	dst = append(dst, ' ')
	dst = append(dst, typ...)
	return append(dst, '\n')
}

func appendContainer(dst []byte, name string, c *Container) []byte {
	dst = append(dst, name...)
	dst = append(dst, `{container="`...)
	dst = append(dst, c.Name...)
	dst = append(dst, `",namespace="`...)
	dst = append(dst, c.Pod.Namespace...)
	dst = append(dst, `",pod="`...)
	dst = append(dst, c.Pod.Name...)
	return append(dst, `"} `...)
}

// appendFloat formats a number as Prometheus' text format does.
func appendFloat(dst []byte, v float64) []byte {
	if v == 0 {
		return append(dst, '0')
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// appendStamp ends a line with a timestamp in milliseconds.
func appendStamp(dst []byte, ns int64) []byte {
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, ns/1e6, 10)
	return append(dst, '\n')
}
