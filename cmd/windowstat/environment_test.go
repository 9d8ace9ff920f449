package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// Every flag of every command can be given by a variable, which --help shows.
func TestEveryFlagHasAVariable(t *testing.T) {
	for _, c := range application(io.Discard, io.Discard).Commands {
		var out bytes.Buffer
		if status := run(t.Context(), []string{"windowstat", c.Name, "--help"}, &out, &out); status != 0 {
			t.Errorf("%s --help: status %d", c.Name, status)
		}
		help := strings.Join(strings.Fields(out.String()), " ")
		for _, f := range c.Flags {
			name := f.Names()[0]
			want := "[$WINDOWSTAT_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(name)) + "]"
			if name != "help" && !strings.Contains(help, want) {
				t.Errorf("%s --help: no %s for --%s", c.Name, want, name)
			}
		}
	}
}

// An argument replaces its variable. The variable of a repeatable flag has one value per line, which may contain
// commas. An error names the variable.
func TestVariables(t *testing.T) {
	for _, tc := range []struct {
		variable, value, args string
		status                int
		want                  string
	}{
		{"OUT", t.TempDir(), "dashboards", 0, "are in"},
		{"FORMAT", "xml", "log --dir " + t.TempDir() + " --format json", 2, "no metric logs"},
		{"FORMAT", "xml", "log --dir " + t.TempDir(), 2, "--format (WINDOWSTAT_FORMAT): "},
		{"RATE", "many", "demo", 2, `--rate (WINDOWSTAT_RATE): "many" is not a number`},
		{"RATE", "0", "demo", 2, "--rate (WINDOWSTAT_RATE): 0"},
		{
			"METRIC_LOG_DIR", "", "demo --rate=-1", 2,
			"--metric-log.dir (WINDOWSTAT_METRIC_LOG_DIR): is empty; omit the flag",
		},
		{"METRIC_LOG_SYNC", "1s", "demo", 2, "--metric-log.sync (WINDOWSTAT_METRIC_LOG_SYNC): needs --metric-log.dir"},
		{"WEB_PROXIES", "10.0.0.7\nx", "demo", 2, `--web.proxies (WINDOWSTAT_WEB_PROXIES): "x" is not an address`},
		{
			"REMOTE_WRITE_LABEL", "a=1,2\nb", "demo", 2,
			`--remote-write.label (WINDOWSTAT_REMOTE_WRITE_LABEL): "b" is not NAME=VALUE`,
		},
		{
			"REMOTE_WRITE_LABEL", "a=1,2\nb=3", "demo --rate=-1", 2,
			"--remote-write.label (WINDOWSTAT_REMOTE_WRITE_LABEL): needs --remote-write.url",
		},
	} {
		t.Run(tc.variable+"="+tc.value, func(t *testing.T) {
			t.Setenv("WINDOWSTAT_"+tc.variable, tc.value)
			var out bytes.Buffer
			status := run(t.Context(), append([]string{"windowstat"}, strings.Fields(tc.args)...), &out, &out)
			if status != tc.status || !strings.Contains(out.String(), tc.want) {
				t.Errorf("status %d: %s\nwant %d: %s", status, &out, tc.status, tc.want)
			}
		})
	}
}

// A comma is a part of the value of a repeatable flag.
func TestCommasInValues(t *testing.T) {
	var out bytes.Buffer
	args := []string{
		"windowstat", "demo", "--rate=-1", "--remote-write.url=http://localhost:1", "--remote-write.label", "team=a,b",
	}
	if status := run(t.Context(), args, &out, &out); status != 2 || strings.Contains(out.String(), "label") {
		t.Errorf("status %d: %s", status, &out)
	}
}
