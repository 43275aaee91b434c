package app

import (
	"slices"

	"github.com/weir-metrics/weir/api/eventsapi/eventwatch"
	"github.com/weir-metrics/weir/api/nodeapi/agents"
	"github.com/weir-metrics/weir/api/nodeapi/oomkills"
	"github.com/weir-metrics/weir/api/replicas"
	"github.com/weir-metrics/weir/autoscaler/run"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/eviction/agent"
	"github.com/weir-metrics/weir/internal/feature"
)

// features are the optional parts of a weir. Each is in its own room, with its flags, their checks and
// what it opens; open has their order. A command that does not add the flags of a feature has it with
// its defaults, and then it opens nothing.
type features struct {
	events            *eventwatch.Watch
	replicas          *replicas.Replicas
	autoscalerClients *run.Clients
	hpaEvents         *run.HPAEvents
	autoscaler        *run.Controller
	guard             *agent.Guard
	kills             *oomkills.Watch
	agents            *agents.Agents
}

func newFeatures() *features {
	clients := &run.Clients{}
	return &features{
		events: &eventwatch.Watch{}, replicas: &replicas.Replicas{}, autoscalerClients: clients,
		hpaEvents: &run.HPAEvents{Clients: clients}, autoscaler: run.NewController(clients), guard: agent.New(), kills: &oomkills.Watch{}, agents: &agents.Agents{},
	}
}

// check checks the flags of the features that a server has.
func (f *features) check(in *feature.Setting) error {
	for _, check := range []func(*feature.Setting) error{f.events.Check, f.hpaEvents.Check, f.autoscaler.Check, f.agents.Check} {
		if err := check(in); err != nil {
			return err
		}
	}
	return nil
}

// actsWith returns the flags by which features act for all replicas.
func (f *features) actsWith() []string {
	return slices.DeleteFunc([]string{f.autoscaler.ActsWith(), f.hpaEvents.ActsWith()}, func(flag string) bool { return flag == "" })
}

// autoscalersOf returns the autoscalers that scale a pod's workload, of those that are watched.
func (f *features) autoscalersOf(p *cluster.Pod) []string {
	names := slices.Concat(f.hpaEvents.AutoscalersOf(p), f.autoscaler.AutoscalersOf(p))
	slices.Sort(names)
	return slices.Compact(names)
}
