package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd accepts the units unchanged, and rates their exposure as low.
func TestUnits(t *testing.T) {
	for file, command := range map[string]string{
		"windowstat.service":          "proxy",
		"windowstat-sentinel.service": "sentinel",
	} {
		t.Run(file, func(t *testing.T) { testUnit(t, file, command) })
	}
}

func testUnit(t *testing.T, file, command string) {
	const binary = "/usr/local/bin/windowstat"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "ExecStart="+binary+" "+command) {
		t.Errorf("the unit does not start %s %s", binary, command)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd")
	}
	unit := filepath.Join(t.TempDir(), file)
	here, err := os.Executable() // systemd looks whether it is there
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), binary, here)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil ||
		len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=20", unit).
		CombinedOutput(); err != nil {
		t.Errorf("the unit is exposed: %v\n%s", err, out)
	}
}
