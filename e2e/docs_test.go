package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/collector/limitfile"
)

// A block is a code block of the documentation.
type block struct{ page, text string }

// blocks returns the code blocks in a language.
func blocks(t *testing.T, language string) (all []block) {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	for _, path := range append(files, "../README.md") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(b), -1) {
			all = append(all, block{filepath.Base(path), m[1]})
		}
	}
	return all
}

// documented returns the configuration of a page that contains a text, with another address instead of shop:9719.
func documented(t *testing.T, page, contains, addr string) string {
	t.Helper()
	var found []string
	for _, b := range blocks(t, "yaml") {
		if b.page == page && strings.Contains(b.text, contains) {
			found = append(found, strings.ReplaceAll(b.text, "shop:9719", addr))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d configurations with %q", page, len(found), contains)
	}
	return found[0]
}

// The test must have run every expression of the documentation on all servers.
func TestDocumentedExpressions(t *testing.T) {
	tried := map[string]bool{
		// The first of these expressions is right on all servers.
		strings.ReplaceAll(quantiles[0].expression, "B",
			`windowstat_persecond_rt_seconds_bucket{resource="checkout"}`): true,
		cutSeconds: true,
	}
	for _, sum := range []string{sumOfNative, sumOn242, sumOfRanges} {
		tried[quantileOf(0.99, sum)] = true
	}
	for _, list := range [][]expression{expressions, ofTargets} {
		for _, e := range list {
			tried[e.right] = true
		}
	}
	n := 0
	for _, b := range blocks(t, "promql") {
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			n++
			if !tried[line] {
				t.Errorf("%s: nobody has tried %s; add it to e2e/expressions_test.go", b.page, line)
			}
		}
	}
	if n < 10 {
		t.Errorf("there are %d expressions", n)
	}
}

// Every configuration of the documentation must be valid for the program that reads it.
func TestDocumentedConfigurations(t *testing.T) {
	all := blocks(t, "yaml")
	if len(all) < 7 {
		t.Errorf("there are %d configurations", len(all))
	}
	for _, b := range all {
		if err := readConfiguration(t, b.text); err != nil {
			t.Errorf("%s: %v:\n%s", b.page, err, b.text)
		}
	}
}

func readConfiguration(t *testing.T, text string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
		return err
	}
	has := func(key string) bool { return keys[key] != nil }
	switch {
	case has("scrape_configs") && strings.Contains(text, "no_stale_markers"):
		return run(t.Context(), ".", vmagent.path(t), "-dryRun", "-promscrape.config="+path,
			"-remoteWrite.url=http://127.0.0.1:1")
	case has("scrape_configs"), has("storage"), has("remote_write"):
		return run(t.Context(), ".", promtool.path(t), "check", "config", "--syntax-only", path)
	case has("receivers"):
		return readReceiver(t, text)
	case has("groups"):
		return run(t.Context(), ".", promtool.path(t), "check", "rules", path)
	case has("exporters"): // OpenTelemetry Collector; TestSpansForwardedByACollector runs it
		return nil
	case has("otel_traces_export"): // eBPF instrumentation; not run
		return nil
	case has("slos"): // Sloth; TestOpenTelemetryNames runs its queries
		return nil
	case has("sources"): // Vector, which no package registry has; package main runs the command in it
		return nil
	case has("limits"):
		_, err := limitfile.Parse([]byte(text))
		return err
	case has("http_server_config"): // --web.config.file; the command prints all errors of its flags together
		err := run(t.Context(), ".", buildWindowstat(t), "demo", "--log.level=none", "--web.config.file="+path)
		if text := fmt.Sprint(err); !strings.Contains(text, "--log.level") ||
			strings.Contains(text, "windowstat: --web.config.file") {
			return err
		}
		return nil
	case keys["kind"] == "ServiceMonitor":
		return readServiceMonitor(text)
	}
	return errors.New("no test reads this configuration; give it a case in e2e/docs_test.go")
}

// readReceiver parses the Prometheus part of a configuration of the OpenTelemetry Collector. TestOpenTelemetryCollector
// and TestOpenTelemetryCollectorPushedTo check that the Collector reads the rest, and a configuration for OTLP.
func readReceiver(t *testing.T, text string) error {
	t.Helper()
	var c struct {
		Receivers struct {
			Prometheus struct{ Config map[string]any }
			OTLP       map[string]any
		}
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Receivers.OTLP != nil {
		return nil
	}
	b, err := yaml.Marshal(c.Receivers.Prometheus.Config)
	if err != nil {
		return err
	}
	return readConfiguration(t, string(b))
}

// readServiceMonitor parses the fields of the Prometheus operator's resource that the documentation uses.
func readServiceMonitor(text string) error {
	var m struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Endpoints []struct {
				Port, Path      string
				Params          map[string][]string
				HonorTimestamps bool `yaml:"honorTimestamps"`
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&m); err != nil {
		return err
	}
	if m.APIVersion != "monitoring.coreos.com/v1" || len(m.Spec.Selector.MatchLabels) == 0 ||
		len(m.Spec.Endpoints) != 1 ||
		!m.Spec.Endpoints[0].HonorTimestamps || m.Spec.Endpoints[0].Path != secondsPath {
		return fmt.Errorf("not a ServiceMonitor that scrapes %s", secondsPath)
	}
	return nil
}
