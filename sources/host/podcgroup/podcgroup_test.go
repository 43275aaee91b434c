package podcgroup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

const (
	uid    = "73296cad-fda8-4a1c-bff9-cb1de73626a6"
	under  = "73296cad_fda8_4a1c_bff9_cb1de73626a6"
	hash   = "0f8ce9ca4e45ee04efb1cd3f24b0b1e9"
	id     = "550a49ead28c8f626c7026d5fad7b537003546386755f06a410a55a76055be87"
	kindID = "fb0b5f0c7fb9157c0c06948ed4e8d5232751f4843811a97cd8dbfa4356d1d00b"
)

// recognised are paths in canonical form.
var recognised = []struct {
	path metric.CgroupPath
	want Ref
}{
	{"/kubepods", Ref{Kind: Root, Driver: Cgroupfs}},
	{"/kubepods/burstable", Ref{Kind: Class, Driver: Cgroupfs, QoS: Burstable}},
	{"/kubepods/besteffort", Ref{Kind: Class, Driver: Cgroupfs, QoS: BestEffort}},
	{"/kubepods/pod" + uid, Ref{Kind: Pod, Driver: Cgroupfs, QoS: Guaranteed, UID: uid}},
	{"/kubepods/burstable/pod" + uid, Ref{Kind: Pod, Driver: Cgroupfs, QoS: Burstable, UID: uid}},
	{"/kubepods/burstable/pod" + hash, Ref{Kind: Pod, Driver: Cgroupfs, QoS: Burstable, UID: hash}},
	{"/kubepods/besteffort/pod" + uid + "/" + id,
		Ref{Kind: Container, Driver: Cgroupfs, QoS: BestEffort, UID: uid, ID: id}},
	{"/kubepods/besteffort/pod" + uid + "/crio-" + id,
		Ref{Kind: Container, Driver: Cgroupfs, QoS: BestEffort, UID: uid, ID: id, Runtime: "crio"}},
	{"/kubepods/pod" + uid + "/" + id + "/init.scope/x",
		Ref{Kind: Inside, Driver: Cgroupfs, QoS: Guaranteed, UID: uid, ID: id}},
	{"/kubepods/pod" + uid + "/crio-conmon-" + id,
		Ref{Kind: Inside, Driver: Cgroupfs, QoS: Guaranteed, UID: uid}},

	{"/kubepods.slice", Ref{Kind: Root, Driver: Systemd}},
	{"/kubepods.slice/kubepods-besteffort.slice", Ref{Kind: Class, Driver: Systemd, QoS: BestEffort}},
	{"/kubepods.slice/kubepods-pod" + under + ".slice",
		Ref{Kind: Pod, Driver: Systemd, QoS: Guaranteed, UID: uid}},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice",
		Ref{Kind: Pod, Driver: Systemd, QoS: Burstable, UID: uid}},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice/cri-containerd-" + id + ".scope",
		Ref{Kind: Container, Driver: Systemd, QoS: Burstable, UID: uid, ID: id, Runtime: "cri-containerd"}},
	{"/kubepods.slice/kubepods-pod" + under + ".slice/crio-" + id + ".scope",
		Ref{Kind: Container, Driver: Systemd, QoS: Guaranteed, UID: uid, ID: id, Runtime: "crio"}},
	{"/kubepods.slice/kubepods-pod" + under + ".slice/crio-" + id + ".scope/container",
		Ref{Kind: Inside, Driver: Systemd, QoS: Guaranteed, UID: uid, ID: id, Runtime: "crio"}},
	{"/kubepods.slice/kubepods-pod" + under + ".slice/docker-" + id + ".scope",
		Ref{Kind: Container, Driver: Systemd, QoS: Guaranteed, UID: uid, ID: id, Runtime: "docker"}},
	{"/kubepods.slice/kubepods-pod" + under + ".slice/crio-conmon-" + id + ".scope",
		Ref{Kind: Inside, Driver: Systemd, QoS: Guaranteed, UID: uid}},

	{"/docker/" + kindID + "/kubelet/kubepods/burstable/pod" + uid + "/" + id,
		Ref{Kind: Container, Driver: Cgroupfs, QoS: Burstable, UID: uid, ID: id}},
	{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + under + ".slice/cri-containerd-" + id + ".scope",
		Ref{Kind: Container, Driver: Systemd, QoS: Burstable, UID: uid, ID: id, Runtime: "cri-containerd"}},
	{"/system.slice/docker-" + kindID + ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + under + ".slice",
		Ref{Kind: Pod, Driver: Systemd, QoS: Guaranteed, UID: uid}},
	{"/kubepods/pod" + uid + "/" + id + "/kubepods/pod11111111-1111-4111-8111-111111111111",
		Ref{Kind: Inside, Driver: Cgroupfs, QoS: Guaranteed, UID: uid, ID: id}},

	{"/docker/" + id, Ref{Kind: Standalone, ID: id}},
	{"/system.slice/docker-" + id + ".scope", Ref{Kind: Standalone, ID: id, Runtime: "docker"}},
	{"/machine.slice/libpod-" + id + ".scope", Ref{Kind: Standalone, ID: id, Runtime: "libpod"}},
}

func TestParse(t *testing.T) {
	for _, c := range recognised {
		cmptest.Equal(t, fmt.Sprintf("Parse(%q)", c.path), c.want, Parse(c.path))
	}
}

func TestParseUncanonical(t *testing.T) {
	f := func(path metric.CgroupPath, want Ref) {
		t.Helper()
		cmptest.Equal(t, fmt.Sprintf("Parse(%q)", path), want, Parse(path))
	}
	// These have upper case and underscores where the driver does not use them.
	f("/kubepods/pod"+metric.CgroupPath(strings.ToUpper(under)), Ref{Kind: Pod, Driver: Cgroupfs, QoS: Guaranteed, UID: uid})
	// These have slashes that path.Clean removes.
	f("kubepods//burstable/", Ref{Kind: Class, Driver: Cgroupfs, QoS: Burstable})
	// The kubelet has the systemd driver and containerd the cgroupfs driver: one directory with
	// colons.
	f("/system.slice/containerd.service/kubepods-besteffort-pod"+under+".slice:cri-containerd:"+id,
		Ref{Kind: Container, QoS: BestEffort, UID: uid, ID: id, Runtime: "cri-containerd"})
	f("/kubepods-pod"+under+".slice:cri-containerd:"+id+"/sub",
		Ref{Kind: Inside, QoS: Guaranteed, UID: uid, ID: id, Runtime: "cri-containerd"})
}

func TestParseOther(t *testing.T) {
	for _, p := range []metric.CgroupPath{
		"", "/", "/init.scope", "/system.slice/ssh.service", "/docker", "/docker/short",
		"/kubepods/other", "/kubepods/pod", "/kubepods/burstable/pod", "/kubepods/pod../x",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-pod" + under + ".slice", // the class does not match
		"/kubepods.slice/pod" + uid,
		"/mykubepods.slice", "/other-kubepods.slice", "/system.slice/crio-conmon-" + id + ".scope",
		"/x.slice:cri-containerd:" + id,
	} {
		if got := Parse(p); got != (Ref{}) {
			t.Errorf("Parse(%q) = %+v, want nothing", p, got)
		}
	}
}

func TestNormalizeUID(t *testing.T) {
	for in, want := range map[string]metric.PodUID{uid: uid, under: uid, strings.ToUpper(uid): uid, hash: hash} {
		if got, ok := NormalizeUID(in); !ok || got != want {
			t.Errorf("NormalizeUID(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "a/b", "a.b", "ü"} {
		if got, ok := NormalizeUID(in); ok {
			t.Errorf("NormalizeUID(%q) = %q, want none", in, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range recognised {
		f.Add(string(c.path))
	}
	f.Add("/a/kubepods-besteffort-pod" + under + ".slice:cri-containerd:" + id)
	f.Fuzz(func(t *testing.T, p string) {
		r := Parse(metric.CgroupPath(p))
		if r.UID != "" {
			if again, ok := NormalizeUID(string(r.UID)); !ok || again != r.UID {
				t.Errorf("NormalizeUID(%q) = %q, %v: not idempotent", r.UID, again, ok)
			}
		}
		if (r.Kind == Pod || r.Kind == Container || r.Kind == Inside) != (r.UID != "") {
			t.Errorf("Parse(%q) = %+v: a UID and its kind disagree", p, r)
		}
		if (r.Kind == Container || r.Kind == Standalone) && !isID(string(r.ID)) {
			t.Errorf("Parse(%q) = %+v: a container without a container ID", p, r)
		}
	})
}
