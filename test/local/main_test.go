//go:build e2e

// Package local runs the built commands as a user does: on this machine's own
// cgroups, compared with the kernel's counters, and on simulated kubelets,
// compared with the simulator's truth. It also runs the commands of the
// documentation. make e2e builds the commands first.
package local

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
)

// burnEnv is the environment variable that makes this test binary burn CPU.
const burnEnv = "WEIR_TEST_BURN"

func TestMain(m *testing.M) {
	if pattern := os.Getenv(burnEnv); pattern != "" {
		burn(pattern)
		return
	}
	os.Exit(m.Run())
}

func get(url string) ([]byte, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return body, nil
}

// used returns the usage of each node, pod, container or cgroup that weir
// serves.
func used(url string, r usage.Resource, query string) (usage.List, error) {
	var list usage.List
	body, err := get(url + weirdev.Path + string(r) + query)
	if err != nil {
		return list, err
	}
	return list, json.Unmarshal(body, &list)
}

// families returns the number of samples of each metric in an exposition.
func families(exposition []byte) map[string]int {
	n := map[string]int{}
	for s := bufio.NewScanner(bytes.NewReader(exposition)); s.Scan(); {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		n[name]++
	}
	return n
}
