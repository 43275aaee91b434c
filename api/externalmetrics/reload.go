package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/internal/history"
)

// Run reads the file again at intervals, until ctx ends. It reads instead of watching, so it
// notices edited files and ConfigMaps alike. Mistakes in the file are logged and counted, and do
// not end Run.
func (p *Provider) Run(ctx context.Context) error {
	defer p.Close()
	log := p.options.Logger
	again := time.NewTicker(p.options.Reread)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		switch changed, err := p.reload(); {
		case err != nil && changed:
			log.Error("the file of rules has mistakes; the rules before it stay in use. Try: weir check rules "+p.options.File, zap.Error(err))
		case changed:
			log.Info("rules of external metrics read", zap.String("file", p.options.File), zap.Int("metrics", len(p.Rules().Metrics)))
		}
	}
}

// reload reads the file and uses its rules. changed reports whether the content differs from the
// last read, valid or not.
func (p *Provider) reload() (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if changed {
			result := "ok"
			if err != nil {
				result = "error"
			}
			p.telemetry.reloads.WithLabelValues(result).Inc()
		}
	}()
	before := p.state.Load()
	next, err := p.load()
	if err != nil {
		p.telemetry.valid.Set(0)
		changed = p.mu.broken == nil || p.mu.broken.Error() != err.Error()
		p.mu.broken = err
		return changed, err
	}
	p.mu.broken = nil
	p.telemetry.valid.Set(1)
	if before != nil && before.source == next.source {
		return false, nil
	}
	p.state.Store(next)
	p.telemetry.rules.Set(float64(len(next.rules.Metrics)))
	p.telemetry.read.SetToCurrentTime()
	if before != nil {
		before.client.Close()
		for _, m := range before.rules.Metrics {
			if next.rules.Metric(m.Name) == nil {
				p.telemetry.queries.DeletePartialMatch(map[string]string{"metric": m.Name})
			}
		}
	}
	if p.mu.changed != nil {
		p.mu.changed()
	}
	return true, nil
}

// onRulesChange calls do now and after each change of the rules.
func (p *Provider) onRulesChange(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.changed = do
	do()
}

// load reads the file and creates its client. The certificates belong to what is read: a new CA is
// a change.
func (p *Provider) load() (*loadedRules, error) {
	content, err := readLimited(p.options.File)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	r, err := rules.Parse(p.options.File, content)
	if err != nil {
		return nil, err
	}
	s := &loadedRules{rules: r, source: string(content)}
	options := history.Options{
		URL: r.Prometheus.URL, CAFile: r.Prometheus.CAFile, BearerTokenFile: r.Prometheus.BearerTokenFile,
		Username: r.Prometheus.Username, PasswordFile: r.Prometheus.PasswordFile, Headers: r.Prometheus.Headers,
	}
	if p.options.URL != "" {
		options.URL = p.options.URL
	}
	for _, f := range []struct{ key, path string }{
		{"caFile", options.CAFile}, {"bearerTokenFile", options.BearerTokenFile}, {"passwordFile", options.PasswordFile},
	} {
		if err := p.options.mayName(f.key, f.path); err != nil {
			return nil, err
		}
	}
	if options.CAFile != "" {
		pem, err := readLimited(options.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read caFile: %w", err)
		}
		s.source += string(pem)
	}
	if s.client, err = history.New(options); err != nil {
		return nil, err
	}
	return s, nil
}

// mayName returns an error if the rules may not name a file. The author of the rules chooses the
// server that gets the files' content, and often is not weir's administrator.
func (o *Options) mayName(key, path string) error {
	if path == "" || slices.Contains(o.MayName, path) {
		return nil
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", key, err)
	}
	folder, err := filepath.Abs(filepath.Dir(o.File))
	if err != nil {
		return fmt.Errorf("find the rules' folder: %w", err)
	}
	if relative, err := filepath.Rel(folder, file); err != nil || !filepath.IsLocal(relative) {
		return fmt.Errorf("the rules name %s %s, which is outside their folder %s: move it there, or give --external-rules-file=%[2]s too", key, path, folder)
	}
	return nil
}

// readLimited reads a file of at most rules.MaxSize bytes.
func readLimited(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, rules.MaxSize+1))
	if err == nil && len(content) > rules.MaxSize {
		err = errors.New(name + " is too large")
	}
	return content, err
}
