package externalmetrics

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/history"
)

// Run reads the file again at intervals, until ctx ends. It reads instead of watching, so it
// notices edited files and ConfigMaps alike. Mistakes in the file are logged and counted, and do
// not end Run.
func (p *Provider) Run(ctx context.Context) error {
	defer p.Close()
	_ = wait.PollUntilContextCancel(ctx, p.options.Reread, false, func(context.Context) (bool, error) {
		switch changed, err := p.reload(); {
		case err != nil && changed:
			p.logMistakes(err)
		case changed:
			p.options.Logger.Info("rules of metrics read", zap.String("file", p.options.File), zap.Int("metrics", len(p.Rules().Metrics)))
		}
		return false, nil
	})
	return nil
}

func (p *Provider) logMistakes(err error) {
	p.options.Logger.Error("the file of rules has mistakes; what they concern is as before. Try: weir check rules "+p.options.File, zap.Error(err))
}

// reload reads the file and uses its rules. The error is about the whole file, whose rules are then
// not used, or about some of the rules. changed reports whether the content differs from the last
// read, valid or not.
func (p *Provider) reload() (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.state.Load()
	next, err := p.load()
	isNew := next != nil && (before == nil || before.source != next.source)
	changed = isNew || err != nil && (p.mu.mistakes == nil || err.Error() != p.mu.mistakes.Error())
	p.mu.mistakes = err
	result, valid := "ok", 1.0
	if err != nil {
		result, valid = "error", 0
	}
	p.telemetry.valid.Set(valid)
	if changed {
		p.telemetry.reloads.WithLabelValues(result).Inc()
	}
	if !isNew {
		if next != nil {
			next.close()
		}
		return changed, err
	}
	if before != nil {
		next.rules.KeepBroken(before.rules)
	}
	p.state.Store(next)
	p.telemetry.rules.Set(float64(len(next.rules.Metrics)))
	p.telemetry.read.SetToCurrentTime()
	if before != nil {
		before.close()
		p.telemetry.forget(before.rules, next.rules)
	}
	for _, do := range p.mu.changed {
		do()
	}
	return true, err
}

// OnListChange is part of metricsgroup.Changing.
func (p *Provider) OnListChange(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.changed = append(p.mu.changed, do)
	do()
}

// load reads the file and creates its clients. If only rules have mistakes, it returns the other rules
// with the error. The certificates belong to what is read: a new CA is a change.
func (p *Provider) load() (*loadedRules, error) {
	content, err := metricsgroup.ReadFile(p.options.File, rules.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	r, mistakes := rules.ParseFor(p.options.Memory, p.options.File, content)
	if r == nil {
		return nil, mistakes
	}
	s := &loadedRules{rules: r, source: string(content), servers: map[string]*server{}}
	if r.Prometheus.URL != "" {
		if err := p.connect(s, "", &r.Prometheus); err != nil {
			return nil, err
		}
	}
	for name, server := range r.Others {
		if err := p.connect(s, name, &server); err != nil {
			return nil, err
		}
	}
	return s, mistakes
}

// connect creates the client for a server.
func (p *Provider) connect(s *loadedRules, name string, o *rules.Prometheus) error {
	options := o.Options
	options.URL = cmp.Or(p.options.URL, options.URL)
	for _, f := range []struct{ key, path string }{
		{"caFile", options.CAFile}, {"certFile", options.CertFile}, {"keyFile", options.KeyFile},
		{"bearerTokenFile", options.BearerTokenFile}, {"passwordFile", options.PasswordFile},
	} {
		if err := p.options.mayName(f.key, f.path); err != nil {
			return err
		}
	}
	if options.CAFile != "" {
		pem, err := metricsgroup.ReadFile(options.CAFile, rules.MaxSize)
		if err != nil {
			return fmt.Errorf("read caFile: %w", err)
		}
		s.source += string(pem)
	}
	client, err := history.New(options)
	if err != nil {
		return err
	}
	s.servers[name] = &server{client, make(chan struct{}, p.options.MaxQueries)}
	return nil
}

// close closes the idle connections to the servers.
func (l *loadedRules) close() {
	for _, server := range l.servers {
		server.Close()
	}
}

// mayName returns an error if the rules may not name a file. The author of the rules chooses the
// server that gets the files' content, and often is not weir's administrator.
func (o *Options) mayName(key, path string) error {
	if path == "" || slices.Contains(o.MayName, path) {
		return nil
	}
	folder, err := filepath.Abs(filepath.Dir(o.File))
	if err != nil {
		return fmt.Errorf("find the rules' folder: %w", err)
	}
	switch allowed, err := metricsgroup.IsWithin(path, folder); {
	case err != nil:
		return fmt.Errorf("find %s: %w", key, err)
	case !allowed:
		return fmt.Errorf("the rules name %s %s, which is outside their folder %s: move it there, or give --external-rules-file=%[2]s too", key, path, folder)
	}
	return nil
}
