package app

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// asWeir is an environment variable. If it is set, a process of this test runs weir with the words
// of the variable as arguments.
const asWeir = "TEST_AS_WEIR"

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(asWeir); ok {
		os.Exit(Main(strings.Fields(args)))
	}
	goleak.VerifyTestMain(m)
}

// nothing is an empty environment.
func nothing(string) string { return "" }

// nobody is an address where no server listens.
const nobody = "127.0.0.1:1"

// The transcripts are the input and output that a user sees.
func TestTranscripts(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			var out bytes.Buffer
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(strings.ReplaceAll(line, "$TAKEN", taken.Addr().String()))
				if words[0] != "weir" {
					t.Fatalf("%s: %q is no command of weir's", d.Pos, line)
				}
				// A command that runs although a mistake was expected ends after this time.
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if status := cli.Main(ctx, NewCommand(nothing, nobody), words[1:], &out, &out); status != 0 {
					fmt.Fprintf(&out, "exit status %d\n", status)
				}
			}
			return strings.ReplaceAll(out.String(), taken.Addr().String(), "$TAKEN")
		})
	})
}
