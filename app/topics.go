package app

import (
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/sinks/remotewrite"
	"github.com/weir-metrics/weir/sources/host"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/sources/player"
)

// newTopics returns pages of help that belong to no command.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		newSecureTopic(),
		{
			Use:   "sources",
			Short: "Where samples come from: --source=NAME[:CONFIG][?OPTIONS]",
			Long: `A source is written NAME[:CONFIG][?OPTIONS], with options as in a URL:
  --source='kubelet:?endpoint=summary&resolution=60s'
Several may be given; of what two of them report, the fresher is served.
Every source that reads has the option resolution, the time between two reads.

kubelet: the kubelets of a cluster or of a list. CONFIG is SCHEME://[HOST][:PORT].
` + kubelet.OptionsHelp() + `

host: this machine, through embedded cAdvisor. There is no CONFIG.
` + host.OptionsHelp() + `

recording: a recorded run, whose times and facts are played with it. CONFIG is the
file. No other source is read beside it.
` + player.OptionsHelp(),
		},
		{
			Use:   "history",
			Short: "What knows the time before weir's memory: --history=prometheus:URL",
			Long:  historyHelp,
		},
		{
			Use:   "sinks",
			Short: "Where results go: --sink=NAME[:CONFIG][?OPTIONS]",
			Long: `memory and prometheus are always there; name them for their options only.

memory: the last round whole, and a history.
  entities              most to remember (default 1048576)
  history               how far back, such as 15m (default); 0 keeps none
  metrics               that have a history, separated by commas
  prefer                sources whose values go first, separated by commas
  rounds                to keep whole (default 1)

prometheus: the exposition on /metrics/cluster.
  label                 only series with NAME=VALUE
  level                 only these: cluster, namespace, node, system, pod, container
  limit                 most series of one answer
  metric                only names that match; * and ? stand for others
  namespace             only these
  timestamps            give each sample its node's time (default false)

remotewrite: to a receiver of Prometheus' remote write, its URL the CONFIG:
--sink=remotewrite:http://prometheus:9090/api/v1/write. Series and names are those of
/metrics/cluster, each value with its node's time. Of several replicas the leader
sends.
` + remotewrite.OptionsHelp() + `

log: a line for each batch, on standard output.
  format                text (default) or json
  verbose               a line for each entity (default false)

recording: what was read, into a file, to be replayed. CONFIG is the file, which
is gone on with if it is there; see weir recording.
  flush                 longest wait before something is written (default 10s)
  keep                  full files to keep beside it, FILE.1 the last (default 1)
  max-age               time in one file, such as 24h; 0 (default) is no limit
  max-size              of one file, such as 500M (default 1Gi); 0 is no limit`,
		},
	}
}
