# Becomes the process that holds a cluster's namespaces. It is started with new
# network and mount namespaces and the cluster's folder as its argument, and
# arranges the mounts, so that programs with fixed paths meet no other cluster's
# files and leave none behind. All of it ends with the namespaces. For a node with
# a disk of its own, its bytes and inodes are further arguments.
set -eu
dir=$1
cd "$dir"
mkdir -p node/lib node/lib.work node/log node/log.work disk

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
if [ $# -gt 1 ]; then
	# No journal and nothing kept for root: what is not used is free.
	ext4() {
		truncate -s "$1" disk.img && /usr/sbin/mkfs.ext4 -q -F -m 0 -O ^has_journal -N "$2" disk.img &&
			mount -o loop disk.img disk
	}
	ext4 "$2" "$3" || mount -t tmpfs -o "mode=755,size=$2,nr_inodes=$3" tmpfs disk || {
		echo "the node's disk: neither a loop device nor a tmpfs can be mounted" >&2
		exit 1
	}
fi
mkdir -p disk/kubelet disk/containerd disk/pods disk/containers
bind disk/kubelet /var/lib/kubelet
bind disk/containerd /var/lib/containerd
bind disk/pods /var/log/pods
bind disk/containers /var/log/containers

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
