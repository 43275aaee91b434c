// Package notify calls a function when the kernel reports that tasks stall, or when a poll finds
// that a node runs short. Eviction then does not have to wait for its next poll.
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
// There are three sources of notices:
//
//   - StallTrigger: tasks stall for more than a part of a window, on the whole node
//     (/proc/pressure).
//   - The caller itself, with Notify: its polls of memory (MemoryPoll), and of disks and process ids
//     (Poll). The kernel gives no notice of disks and process ids.
//   - The timer: Run calls the function at least every Options.MaxInterval.
//
// Notices that come at the same time lead to one call. Notices that come during a call lead to one
// more call, because the read of the current call may be too early for them. The first two calls of a
// burst are made at once, the next one Options.MinInterval after the first or later, and so on.
//
// The package does not use the kernel's notices of memory. That of cgroup version 1
// (cgroup.event_control) counts the usage, which includes the page cache that the kernel can drop.
// The figure to register therefore changes with the page cache, and on a node full of page cache the
// usage does not grow with the working set. It also needs a cgroup file system that may be written.
// Version 2 has no such notice. Its memory.events changes when a cgroup reaches its limit. For the
// node that is too late. For a pod whose page cache fills its limit, it changes continuously.
//
// On systems other than Linux there is only the timer.
//
// Files:
//
//   - notifier.go: Notifier with Update, Run and Close.
//   - watch.go: what can be watched, and the errors of watches.
//   - notice.go: Notice and NoticeSource.
//   - mailbox.go: the mailbox, which collects notices and delivers them.
//   - kernel_linux.go: registers StallTriggers, and polls them; kernel_other.go: no notices.
package notify
