// Package notify calls a function when the kernel reports that a node runs short of memory, or that
// tasks stall. Eviction then does not have to wait for its next poll.
//
// Usage:
//
//	n, err := notify.New(notify.Options{})
//	defer n.Close()
//	err = n.Run(ctx, func(ctx context.Context, notice notify.Notice) {
//		... one fresh read, one decision ...
//		err := n.Update(watches...) // the error names what the kernel refused
//	})
//
// There are four sources of notices:
//
//   - UsageThreshold: the usage of a memory cgroup of version 1 crosses a figure (an eventfd
//     written to cgroup.event_control). Version 2 has no equivalent: use a StallTrigger of
//     memory, and the timer.
//   - StallTrigger: tasks stall for more than a part of a window, on the whole node
//     (/proc/pressure) or in a cgroup of version 2 (*.pressure).
//   - EventCounters: counters in a file such as memory.events (version 2) change: high, max,
//     oom. The package never writes memory.high, because the kernel throttles a cgroup above it.
//   - The timer: Run calls the function at least every Options.MaxInterval.
//
// Notices that come at the same time lead to one call. Notices that come during a call lead to one
// more call, because the read of the current call may be too early for them. The first call of a
// burst is made at once, the next one after Options.MinInterval or later.
//
// An eviction threshold applies to the working set, which excludes the page cache that the kernel
// can drop (inactive_file). But the kernel compares the whole usage. The figure of a UsageThreshold
// is therefore the working set plus that cache, and Run updates it every Options.FollowInterval,
// also between two calls. Without the update, a process that grows on a node full of page cache
// would replace cache: the usage would stay the same, and would never cross the figure.
//
// On systems other than Linux there is only the timer.
//
// Files:
//
//   - notifier.go: Notifier with Update, Run and Close.
//   - watch.go: what can be watched, and the errors of watches.
//   - notice.go: Notice and NoticeSource, and the mailbox that collects notices until they are delivered.
//   - kernel_linux.go: the epoll set, and reads of kernel files; kernel_other.go: no notices.
//   - threshold_linux.go, trigger_linux.go, events_linux.go: one kind of watch each.
//   - parse.go: parsers of cgroup and pressure files.
package notify
