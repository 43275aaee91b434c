package server_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/server"
)

// The names of the flags are those of metrics-server.
func TestFlags(t *testing.T) {
	o := server.NewOptions()
	f := pflag.NewFlagSet("weir", pflag.ContinueOnError)
	o.AddFlags(f)
	for name, want := range map[string]string{
		"secure-port":                                  "443",
		"bind-address":                                 "0.0.0.0",
		"tls-cert-file":                                "",
		"tls-private-key-file":                         "",
		"cert-dir":                                     "",
		"tls-min-version":                              "VersionTLS12",
		"tls-cipher-suites":                            "[]",
		"authentication-kubeconfig":                    "",
		"authentication-skip-lookup":                   "false",
		"authentication-tolerate-lookup-failure":       "false",
		"authentication-token-webhook-cache-ttl":       "10s",
		"client-ca-file":                               "",
		"requestheader-client-ca-file":                 "",
		"requestheader-username-headers":               "[x-remote-user]",
		"requestheader-group-headers":                  "[x-remote-group]",
		"requestheader-extra-headers-prefix":           "[x-remote-extra-]",
		"requestheader-allowed-names":                  "[]",
		"authorization-kubeconfig":                     "",
		"authorization-always-allow-paths":             "[/healthz,/readyz,/livez]",
		"authorization-webhook-cache-authorized-ttl":   "10s",
		"authorization-webhook-cache-unauthorized-ttl": "10s",
		"audit-log-path":                               "",
		"audit-policy-file":                            "",
		"profiling":                                    "false",
		"request-timeout":                              "1m0s",
		"max-requests-inflight":                        "400",
		"max-mutating-requests-inflight":               "200",
		"shutdown-delay-duration":                      "5s",
	} {
		flag := f.Lookup(name)
		if flag == nil {
			t.Errorf("there is no --%s", name)
			continue
		}
		if flag.DefValue != want {
			t.Errorf("--%s is %q by default, want %q", name, flag.DefValue, want)
		}
	}
	if err := o.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{
		"--tls-min-version=VersionTLS11":              "--tls-min-version cannot be VersionTLS11: weir supports TLS 1.2 and later; use VersionTLS12 or VersionTLS13",
		"--tls-min-version=1.2":                       `--tls-min-version cannot be "1.2": use VersionTLS12 or VersionTLS13`,
		"--tls-cert-file=tls.crt":                     "--tls-cert-file and --tls-private-key-file go together: give both, or neither for a self-signed certificate",
		"--secure-port=-1":                            "--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port",
		"--enable-priority-and-fairness":              "--enable-priority-and-fairness cannot be true: weir bounds requests with --max-requests-inflight; leave the flag out",
		"--max-requests-inflight=0":                   "--max-requests-inflight must be greater than 0: without a limit one client could exhaust the server",
		"--request-timeout=0":                         "--request-timeout must be greater than 0: without a limit one client could exhaust the server",
		"--shutdown-delay-duration=-1s":               "--shutdown-delay-duration cannot be negative; 0 means no delay",
		"--authorization-always-allow-paths=/a/*/b":   `--authorization-always-allow-paths: "/a/*/b" may have a * only at its end`,
		"--requestheader-username-headers= ":          `empty value in "requestheader-username-headers"`,
		"--audit-log-path=file --audit-log-format=no": `invalid audit log format no, allowed formats are "legacy,json"`,
	} {
		o := server.NewOptions()
		f := pflag.NewFlagSet("weir", pflag.ContinueOnError)
		o.AddFlags(f)
		parts := strings.Split(args, " --")
		for i := range parts[1:] {
			parts[i+1] = "--" + parts[i+1]
		}
		if err := f.Parse(parts); err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		err := o.Validate()
		if err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), want) {
			t.Errorf("%s\n got: %v\nwant: %s", args, err, want)
		}
	}
}

func TestPortZeroServesNothing(t *testing.T) {
	o := server.NewOptions()
	o.SecureServing.BindPort = 0
	if o.Enabled() {
		t.Error("port 0 is enabled")
	}
	if _, err := server.New(o, server.Config{}); err == nil || err.Error() != "--secure-port is 0: there is nothing to serve" {
		t.Errorf("New: %v", err)
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	expect := func(with func(*server.Options), config server.Config, parts ...string) {
		t.Helper()
		o := server.NewOptions()
		o.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
		o.SecureServing.BindPort = taken.Addr().(*net.TCPAddr).Port
		with(o)
		_, err := server.New(o, config)
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("New: %v\nlacks %q", err, part)
			}
		}
	}
	expect(func(*server.Options) {}, server.Config{}, "open secure port: ", "address already in use; --secure-port and --bind-address choose another")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	expect(func(o *server.Options) { o.SecureServing.Listener = free }, server.Config{Kubeconfig: "nowhere"}, "set up authentication: ", "nowhere")
	expect(func(o *server.Options) {
		o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile = "nowhere.crt", "nowhere.key"
	}, server.Config{}, "read serving certificate nowhere.crt and its key: open nowhere.crt: no such file")
	if _, err := net.Dial("tcp", free.Addr().String()); err == nil {
		t.Error("the port is still open after New has failed")
	}
}

func TestCloseFreesThePort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := server.NewOptions()
	o.SecureServing.Listener = ln
	o.Authentication.SkipInClusterLookup = true
	s, err := server.New(o, server.Config{Kubeconfig: newCluster(t).kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Address()); err == nil {
		t.Error("the port is still open")
	}
}
