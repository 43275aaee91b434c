// Package notify calls a function when the kernel reports that a node runs short of memory, or
// that tasks stall, so that eviction does not have to wait for its next poll.
//
// Usage:
//
//	n, err := notify.New(notify.Options{})
//	defer n.Close()
//	err = n.Run(ctx, func(ctx context.Context, notice notify.CgroupThreshold) {
//		... one fresh read, one decision ...
//		err := n.Update(watches...) // says what the kernel refused; the others hold
//	})
//
// What can be watched, and what stands in where the kernel lacks it:
//
//   - Threshold: the usage of a memory cgroup of version 1 crosses a figure (an eventfd
//     written to cgroup.event_control). Version 2 has nothing like it; a Trigger of memory
//     and the timer stand in.
//   - Trigger: tasks stall for longer than so much of a window, on the whole node
//     (/proc/pressure) or in a cgroup of version 2 (*.pressure).
//   - Events: the counters of a file like memory.events (version 2) change: high, max, oom.
//     memory.high itself is only watched through them and never written, for it throttles
//     whoever goes beyond it.
//   - The timer, the floor: Run never stays silent for longer than Options.MaxInterval.
//
// However many notices come at once, they make one call. What comes while the caller
// works makes one more after it, as it may have come too late for that call's read. The
// first call of a burst is made at once; the next no sooner than Options.MinInterval later.
//
// The threshold of a Threshold is meant for the working set, which leaves out the page
// cache that the kernel could drop at any time (inactive_file), but the kernel compares
// the whole usage. So its figure moves with that cache, and Run follows it
// (Options.FollowInterval), also between two calls. It needs to: on a node whose memory is full of
// cache, a growing process displaces cache, the usage stays the same, and no figure that
// stands still is ever crossed.
//
// Other systems than Linux have the timer alone.
package notify
