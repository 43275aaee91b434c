package usererror

import "testing"

func TestClosest(t *testing.T) {
	known := []string{"kubelet", "host", "prometheus", "log"}
	for _, test := range []struct {
		name, want string
	}{
		{"kublet", "kubelet"}, {"Kubelet", "kubelet"}, {"hots", "host"}, {"promethues", "prometheus"}, {"lgo", "log"},
		{"influxdb", ""}, {"", ""}, {"x", ""},
	} {
		got, ok := Closest(test.name, known)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("Closest(%q) = %q, %v; want %q", test.name, got, ok, test.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
