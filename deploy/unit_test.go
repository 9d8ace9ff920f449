package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd takes the unit as it is, and thinks that it gives away little.
func TestUnit(t *testing.T) {
	const binary = "/usr/local/bin/windowstat"
	text, err := os.ReadFile("windowstat.service")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "ExecStart="+binary+" proxy") {
		t.Errorf("the unit does not start %s", binary)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd")
	}
	unit := filepath.Join(t.TempDir(), "windowstat.service")
	here, err := os.Executable() // systemd looks whether it is there
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), binary, here)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=20", unit).CombinedOutput(); err != nil {
		t.Errorf("the unit is exposed: %v\n%s", err, out)
	}
}
