package version

import "testing"

func TestString(t *testing.T) {
	for want, i := range map[string]Info{
		"weir v1.2.3 (0123456789ab, go1.26.0, linux/amd64)":        {Version: "v1.2.3", Commit: "0123456789abcdef", Go: "go1.26.0", System: "linux/amd64"},
		"weir devel (0123456789ab+changes, go1.26.0, linux/amd64)": {Version: "devel", Commit: "0123456789abcdef", Dirty: true, Go: "go1.26.0", System: "linux/amd64"},
		"weir devel (go1.26.0, darwin/arm64)":                      {Version: "devel", Go: "go1.26.0", System: "darwin/arm64"},
	} {
		if got := i.String(); got != want {
			t.Errorf("%+v\n got: %s\nwant: %s", i, got, want)
		}
	}
}

func TestGetNamesSomething(t *testing.T) {
	if i := Get(); i.Version == "" || i.Go == "" || i.System == "" {
		t.Errorf("Get() = %+v, want version, Go and system", i)
	}
}

// Clients of Kubernetes parse the version as a semantic one.
func TestKubernetes(t *testing.T) {
	for version, want := range map[string][3]string{
		"v1.2.3":            {"1", "2", "v1.2.3"},
		"v0.9.0-4-g0123456": {"0", "9", "v0.9.0-4-g0123456"},
		"0123456":           {"0", "0", "v0.0.0-0123456"},
		"devel":             {"0", "0", "v0.0.0-devel"},
	} {
		got := Info{Version: version}.Kubernetes()
		if got := [3]string{got.Major, got.Minor, got.GitVersion}; got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}
