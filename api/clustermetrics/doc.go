// Package clustermetrics shows every metric of every entity to a Prometheus that
// comes to read it, in the text exposition format: weir_<kind>_<name>, in base
// units, with the labels node, namespace, pod, container and cgroup as they
// apply.
//
// It keeps nothing of its own. What it shows is the latest snapshot of whoever
// remembers, so that series of entities that are gone are gone from the next
// scrape, and what is not served elsewhere is not served here.
//
// Interfaces, devices, volumes and accelerators have families of their own,
// weir_node_interface_network_receive_bytes_total{interface="eth0"}, beside the
// node's. In one family with the node's own value a sum() would count twice.
package clustermetrics
