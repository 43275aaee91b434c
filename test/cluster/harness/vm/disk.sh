# disk.sh ROOT.TAR FILES DISK: writes an ext4 disk with Debian and the folder FILES
# over it.
set -eu
tar=$1 files=$2 disk=$3
root=$disk.root
mkdir "$root"
tar -C "$root" -xf "$tar"
cp -r --no-preserve=ownership "$files/." "$root"
units=$root/etc/systemd/system
for unit in guest containerd; do ln -sf "../$unit.service" "$units/multi-user.target.wants/$unit.service"; done
# Work that Debian does by itself, at any time; and at boot, for hardware and users
# that this machine does not have. Its few drivers are in modules-load.d.
for unit in systemd-udev-trigger.service systemd-logind.service systemd-user-sessions.service kmod-static-nodes.service \
	modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service modprobe@efi_pstore.service \
	modprobe@fuse.service modprobe@loop.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
	apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
	systemd-tmpfiles-clean.timer e2scrub_reap.service apparmor.service getty@tty1.service serial-getty@ttyS0.service \
	systemd-update-utmp.service systemd-update-utmp-runlevel.service; do
	ln -sf /dev/null "$units/$unit"
done
# A test starts these.
find "$units" -type l \( -name 'systemd-oomd.*' -o -name 'earlyoom.*' -o -name 'docker.*' -o -name dbus-org.freedesktop.oom1.service \) -delete
echo '/dev/vda / ext4 defaults,noatime 0 1' >"$root/etc/fstab"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
truncate -s 6G "$disk"
# So few inodes that a test can use them up.
/usr/sbin/mkfs.ext4 -q -F -N 40000 -d "$root" "$disk"
rm -r "$root"
