# Becomes the process that holds a cluster's namespaces. It is started with new
# network and mount namespaces and the cluster's folder as its argument, and
# arranges the mounts, so that programs with fixed paths meet no other cluster's
# files and leave none behind. All of it ends with the namespaces.
set -eu
dir=$1
cd "$dir"
mkdir -p node/lib node/lib.work node/log node/log.work kubelet containerd pods containers

# Pods' volumes must reach the runtime: mounts spread, but only inside.
mount --make-rshared /

# Sockets and container state: paths of sockets must be short.
mount -t tmpfs -o mode=755 tmpfs /run

# What is written to /var/lib and /var/log goes to the cluster's folder.
mount -t overlay -o "lowerdir=/var/lib,upperdir=$dir/node/lib,workdir=$dir/node/lib.work" overlay /var/lib
mount -t overlay -o "lowerdir=/var/log,upperdir=$dir/node/log,workdir=$dir/node/log.work" overlay /var/log
case $dir in # still the true folder, not the overlay's view of it
/var/lib/* | /var/log/*) mount --no-canonicalize --bind . "$dir" ;;
esac

# An overlay cannot hold another overlay's layers, and the kubelet must see
# which disk its folder lies on.
bind() {
	mkdir -p "$2"
	mount --no-canonicalize --bind "$1" "$2"
}
bind kubelet /var/lib/kubelet
bind containerd /var/lib/containerd
bind pods /var/log/pods
bind containers /var/log/containers

# The kubelet sets these for the whole machine unless they are so already.
pretend() {
	[ -e "$1" ] || return 0
	file=node/$(echo "$1" | tr / _)
	echo "$2" >"$file"
	mount --no-canonicalize --bind "$file" "$1"
}
pretend /proc/sys/vm/overcommit_memory 1
pretend /proc/sys/vm/panic_on_oom 0
pretend /proc/sys/kernel/panic 10
pretend /proc/sys/kernel/panic_on_oops 1
pretend /proc/sys/kernel/keys/root_maxkeys 1000000
pretend /proc/sys/kernel/keys/root_maxbytes 25000000

# These belong to the network namespace.
echo 1 >/proc/sys/net/ipv4/ip_forward
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then
	echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
fi

touch node/ready
exec sleep infinity
