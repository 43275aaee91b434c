//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/test/bench/process"
)

const (
	staticScenario = "static"
	churnScenario  = "churn"
)

// A Result contains all measurements, so that a later run can be compared with
// it.
type Result struct {
	Machine Machine `json:"machine"`
	Options Options `json:"options"`
	Turns   []Turn  `json:"turns"`
}

// measure runs all scenarios and writes the tables.
func measure(ctx context.Context, o Options, out, progress io.Writer) (err error) {
	scenarios := []string{staticScenario, churnScenario}
	if o.Only != "" {
		if err := cli.OneOf("--only", o.Only, scenarios...); err != nil {
			return err
		}
		scenarios = []string{o.Only}
	}
	for _, path := range o.Out {
		if e := filepath.Ext(path); e != ".md" && e != ".json" {
			return cli.Usage(fmt.Errorf("--out %s: its name must end in .md or .json", path))
		}
	}
	began := time.Now()
	logf := func(format string, args ...any) {
		fmt.Fprintf(progress, "%7.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if o.Keep {
			logf("logs are in %s", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	result := Result{Machine: describeMachine(), Options: o}
	for _, s := range scenarios {
		if err = o.scenario(ctx, s, dir, logf, &result); err != nil {
			err = fmt.Errorf("measure on the %s cluster: %w", s, err)
			break
		}
	}
	if len(result.Turns) == 0 {
		return err
	}
	return errors.Join(err, result.write(out, o.Out)) // the measurements before an error are written too
}

// scenario runs every program on one cluster, and adds the turns to the result.
func (o Options) scenario(ctx context.Context, name, dir string, logf func(string, ...any), result *Result) (err error) {
	rounds, fill := o.Rounds, o.Fill
	o.Shape.Start = time.Now()
	if name == churnScenario {
		rounds, fill = o.ChurnRounds, 0
		o.Shape.Churn = o.longest(rounds)
	}
	logf("%s: %d nodes × %d pods × %d containers", name, o.Shape.Nodes, o.Shape.Pods, o.Shape.Containers)
	w, err := newEnvironment(ctx, o, dir, logf)
	defer func() { err = errors.Join(err, w.close()) }()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	port, err := process.FreePort()
	if err != nil {
		return err
	}
	programs := w.peers(port)
	result.Machine.Programs = programVersions(programs)
	for round := range rounds {
		begin := func(program string) *Turn {
			logf("%s, round %d of %d: %s", name, round+1, rounds, program)
			return &Turn{Scenario: name, Round: round + 1, Program: program, Values: map[string]float64{}, Requests: map[string][]float64{}}
		}
		for _, floor := range []string{plainName, beatFetch, peerFetch} {
			t := begin(floor)
			if err := w.floor(ctx, self, floor, t); err != nil {
				return err
			}
			result.Turns = append(result.Turns, *t)
		}
		for i := range programs {
			p := programs[(i+round)%len(programs)] // the order changes each round
			t, old := begin(p.name), time.Duration(0)
			if p.name == weirName && round == rounds-1 {
				old = fill
			}
			if err := w.turn(ctx, p, fmt.Sprintf("https://127.0.0.1:%d", port), old, t); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			result.Turns = append(result.Turns, *t)
		}
	}
	return nil
}

// longest returns an upper bound for the time of this many rounds, with
// seeding.
func (o Options) longest(rounds int) time.Duration {
	bursts := 7 * max(2*o.Burst, time.Duration(o.Requests)*time.Second)
	each := 2*(o.Warm+o.Window+bursts+2*time.Minute+time.Duration(2+o.Looks)*o.Resolution) + 2*(o.FloorWindow+3*o.Resolution)
	return 10*time.Minute + time.Duration(rounds)*each
}

// write prints the tables, and writes them and the raw numbers to files.
func (r *Result) write(out io.Writer, files []string) error {
	text := r.render(plain)
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	for _, path := range files {
		b := []byte(r.render(markdown))
		if strings.HasSuffix(path, ".json") {
			var err error
			if b, err = json.MarshalIndent(r, "", " "); err != nil {
				return fmt.Errorf("write numbers: %w", err)
			}
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return fmt.Errorf("write tables: %w", err)
		}
	}
	return nil
}
