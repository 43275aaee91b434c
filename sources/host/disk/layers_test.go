package disk

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestOverlays(t *testing.T) {
	f := func(mountinfo string, want ...overlay) {
		t.Helper()
		cmptest.Equal(t, mountinfo, want, parseOverlays([]byte(mountinfo)), cmp.AllowUnexported(overlay{}))
	}
	f("44 27 0:39 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l/1:/l/2,upperdir=/s/9/fs,workdir=/s/9/work,uuid=on\n",
		overlay{"/", "/s/9/fs"})
	f("44 27 0:39 / /a\\040b rw - overlay overlay rw,upperdir=/c\\054d\\134\\012/../e,workdir=/w\n",
		overlay{"/a b", "/e"})
	f("27 1 254:0 / / rw - ext4 /dev/vda rw\n"+ // this is under the overlay
		"44 27 0:39 / /x rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n"+
		"45 44 0:39 / /y rw,relatime shared:4 master:2 - overlay none rw,upperdir=/v\n",
		overlay{"/x", "/u"}, overlay{"/y", "/v"})
	f("44 27 0:39 / /x ro - overlay overlay ro,lowerdir=/l/1:/l/2\n")        // a read-only overlay has no writable layer
	f("44 27 0:39 /etc/hosts /x rw - overlay overlay rw,upperdir=/u\n")      // only a part of the file system is mounted
	f("44 27 0:39 / /x rw - overlay overlay rw,upperdir=ab12/diff\n")        // the path is relative to an unknown directory
	f("44 27 0:39 / /x rw - tmpfs tmpfs rw,upperdir=/u\n")                   // not an overlay
	f("44 27 0:39 / /x rw - overlay overlay\n - overlay overlay upperdir=/") // the line is cut
	f("")
}

func TestRootLayer(t *testing.T) {
	f := func(list []overlay, want string) {
		t.Helper()
		if got, ok := rootLayer(list); got != want || ok != (want != "") {
			t.Errorf("rootLayer(%v) = %q, %v, want %q", list, got, ok, want)
		}
	}
	f(nil, "")
	f([]overlay{{"/mnt", "/a"}}, "")
	f([]overlay{{"/", "/a"}, {"/mnt", "/c"}}, "/a")
	f([]overlay{{"/", "/a"}, {"/", "/b"}}, "/b")
}

func TestContainerOf(t *testing.T) {
	const uid = metric.PodUID("73296cad-fda8-4a1c-bff9-cb1de73626a6")
	low, id, inner := strings.ReplaceAll(string(uid), "-", "_"), strings.Repeat("a", 64), strings.Repeat("b", 64)
	f := func(cgroup string, wantUID metric.PodUID) {
		t.Helper()
		ref, ok := containerOf(cgroup)
		if ref.UID != wantUID || ok != (wantUID != "") || ok && ref.ID != metric.ContainerID(id) {
			t.Errorf("%s: %+v, %v, want pod %s", cgroup, ref, ok, wantUID)
		}
	}
	f("12:pids:/kubepods/burstable/pod"+string(uid)+"/"+id+"\n11:memory:/\n", uid)
	f("12:pids:/\n1:name=systemd:/kubepods/pod"+string(uid)+"/"+id, uid)
	f("0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod"+low+".slice/cri-containerd-"+id+".scope\n", uid)
	f("0::/system.slice/kubepods-burstable-pod"+low+".slice:cri-containerd:"+id+"\n", uid)
	f("0::/kubepods/pod"+string(uid)+"/"+id+"/docker/"+inner+"\n", uid)

	// These paths are seen from another cgroup namespace.
	f("0::/../../pod"+string(uid)+"/"+id, uid)
	f("0::/../../../besteffort/pod"+string(uid)+"/"+id, uid)
	f("0::/../../kubepods-burstable-pod"+low+".slice/cri-containerd-"+id+".scope", uid)
	f("0::/../../kubepods-besteffort-pod"+low+".slice/cri-containerd-"+id+".scope", uid)
	f("0::/../../../kubepods-pod"+low+".slice/cri-containerd-"+id+".scope", uid)
	f("0::/../../../kubepods-burstable.slice/kubepods-burstable-pod"+low+".slice/cri-containerd-"+id+".scope/init.scope", uid)

	f("0::/kubepods/pod"+string(uid)+"\n", "")   // the cgroup of the pod itself
	f("0::/docker/"+id+"\n", "")                 // the container has no pod
	f("0::/../"+id, "")                          // a container of the same pod: the pod's name is above the namespace's root
	f("0::/", "")                                // this process itself
	f("12:pids\n\n:::\n", "")                    // not valid
	f("0::/pod"+string(uid)+"/"+id+" (old)", "") // a removed cgroup
}

// FuzzOverlays checks that every parsed layer is in the mount line.
func FuzzOverlays(f *testing.F) {
	f.Add([]byte("44 27 0:39 / / rw - overlay overlay rw,upperdir=/s/9\\040/fs,workdir=/w\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range parseOverlays(data) {
			if !path.IsAbs(o.upper) || o.upper != path.Clean(o.upper) {
				t.Errorf("layer %q is not a clean absolute path", o.upper)
			}
			if !strings.Contains(string(data), "upperdir=") {
				t.Errorf("layer %q of nothing", o.upper)
			}
		}
	})
}

func FuzzContainerOf(f *testing.F) {
	f.Add("0::/../../pod73296cad-fda8-4a1c-bff9-cb1de73626a6/" + strings.Repeat("a", 64))
	f.Fuzz(func(t *testing.T, cgroup string) {
		ref, ok := containerOf(cgroup)
		if ok != (ref.UID != "" && ref.ID != "") {
			t.Errorf("containerOf = %+v, %v", ref, ok)
		}
		if !strings.Contains(cgroup, string(ref.ID)) {
			t.Errorf("container %s is not in it", ref.ID)
		}
	})
}
