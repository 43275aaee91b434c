// Package humanize formats numbers, times and lists for people. Commands, the page, explanations,
// Events and logs use only this package, so that a number looks the same everywhere. It does not
// format what programs read (JSON, metrics, Kubernetes quantities).
//
//	Bytes           1.5Gi, 342Mi, 9.28Ti   binary units, three significant digits
//	BytesPerSecond  1.5Mi/s
//	Cores           72m, 1771m, 12.3, 1,683
//	CoresLike       the same in one unit: 0.072, 1.77, 12.3
//	Percent         0.4%, 12.5%, 137%
//	Number          1,683
//	Decimal         0.8333, 1,234.5
//	Count           1 pod, 1,683 pods
//	Duration        0.7s, 45s, 1m30s, 2h5m, 3d4h
//	Ago             59s ago, just now, in 9s
//	Clock           11:52:48 UTC, with the date on another day
//	List            a, b and 3 more
//
// amount.go has numbers, time.go has times, text.go has counts and lists, page.go has texts for a terminal,
// and table.go their tables.
package humanize
