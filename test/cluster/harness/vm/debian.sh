# debian.sh SCRIPT SUITE PACKAGES OUT: downloads Debian. OUT gets root.tar, its
# kernel (vmlinuz), an initrd made by SCRIPT, and the packages' versions. The list of
# a mirror that is behind may be out of date.
set -eu
script=$1 suite=$2 packages=$3 out=$4
mmdebstrap --quiet --variant=minbase --include="$packages" --aptopt='Acquire::Check-Valid-Until "false"' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--customize-hook="copy-in $script /tmp" \
	--customize-hook='chroot "$1" sh /tmp/initrd.sh' \
	--customize-hook="download /boot/vmlinuz $out/vmlinuz" \
	--customize-hook="download /boot/initrd $out/initrd" \
	--customize-hook="chroot \"\$1\" dpkg-query --show >$out/versions" \
	--customize-hook='rm -r "$1"/boot/* "$1/tmp/initrd.sh"' \
	"$suite" "$out/root.tar"
