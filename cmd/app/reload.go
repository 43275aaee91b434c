package app

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/app/logging"
)

// rereadConfig is the time between two reads of the file of --config.
const rereadConfig = 10 * time.Second

// configReload reads the file of --config again and uses what can be used without a restart: the
// level of the log. Everything else is part of the plan, which is compiled and opened once. The
// files that flags name (targets, rules of metrics, certificates, tokens) are read again
// by those who use them.
type configReload struct {
	file  *configfile.Reloader
	log   *zap.Logger
	level zap.AtomicLevel
	// logging has the flags about the log, as they are used.
	logging logging.Options
	reloads *prometheus.CounterVec // by result
	broken  string                 // the last error, so that it is logged once
}

func newConfigReload(file *configfile.Reloader, log *zap.Logger, level zap.AtomicLevel, o logging.Options, r prometheus.Registerer) *configReload {
	c := &configReload{file: file, log: log, level: level, logging: o, reloads: promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_config_reloads_total",
		Help: "Changes of the file of --config, by what became of them: ok, restart if some of it is used after a restart only, error if the file has mistakes and changes nothing.",
	}, []string{"result"})}
	for _, result := range []string{"ok", "restart", "error"} {
		c.reloads.WithLabelValues(result)
	}
	return c
}

// run reads the file at intervals until ctx ends.
func (c *configReload) run(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, rereadConfig, false, func(context.Context) (bool, error) {
		c.reload()
		return false, nil
	})
	return nil
}

// reload uses the changes in the file. It logs and counts each version of the file once.
func (c *configReload) reload() {
	err := c.file.Reload(c.use)
	if err == nil {
		c.broken = ""
		return
	}
	if c.broken != err.Error() {
		c.broken = err.Error()
		c.reloads.WithLabelValues("error").Inc()
		c.log.Error("the file of --config has mistakes: nothing of it is used. Try: weir check config "+c.file.File, zap.Error(err))
	}
}

// use sets the level of the log, and logs the names of the changed flags.
func (c *configReload) use(flags *pflag.FlagSet, changed []string) (err error) {
	o := c.logging
	var later []string
	for _, name := range changed {
		switch name {
		case "log-level":
			o.Level, err = flags.GetString(name)
		case "v":
			o.Verbosity, err = flags.GetInt(name)
		default:
			later = append(later, name)
		}
		if err != nil {
			return err
		}
	}
	level, err := o.LeastLevel()
	if err != nil {
		return err
	}
	c.logging = o
	c.level.SetLevel(level)
	if len(later) > 0 {
		c.reloads.WithLabelValues("restart").Inc()
		c.log.Warn("the file of --config has changed: restart weir to use all of it", zap.String("needs a restart", strings.Join(later, ", ")))
		return nil
	}
	c.reloads.WithLabelValues("ok").Inc()
	c.log.Info("the file of --config has changed, and is used", zap.String("changed", strings.Join(changed, ", ")))
	return nil
}
