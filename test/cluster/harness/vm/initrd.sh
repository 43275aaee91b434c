# Runs in Debian's root: writes /boot/initrd, which loads the drivers of the disk
# and goes over to it, and /boot/vmlinuz. Debian's own initrd has every driver; in
# emulation that takes seconds.
set -eu
version=$(ls /lib/modules)
dir=$(mktemp -d)
mkdir "$dir/bin" "$dir/dev" "$dir/proc" "$dir/root" "$dir/modules"
cp /bin/busybox "$dir/bin/"
n=10
for module in virtio_pci virtio_blk ext4; do
	for file in $(modprobe -S "$version" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'); do
		ls "$dir/modules"/*-"${file##*/}" >/dev/null 2>&1 || cp "$file" "$dir/modules/$n-${file##*/}"
		n=$((n + 1))
	done
done
cat >"$dir/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t proc none /proc
for module in /modules/*; do /bin/busybox insmod "$module"; done
while [ ! -b /dev/vda ]; do /bin/busybox usleep 50000; done
/bin/busybox mount -t ext4 -o noatime /dev/vda /root
/bin/busybox umount /proc
exec /bin/busybox switch_root /root /lib/systemd/systemd
END
chmod +x "$dir/init"
(cd "$dir" && find . | cpio -o -H newc --quiet | gzip -1) >/boot/initrd
mv "/boot/vmlinuz-$version" /boot/vmlinuz
rm -r "$dir"
