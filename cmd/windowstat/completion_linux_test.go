package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is an interactive shell in a pseudo terminal.
type console struct {
	keyboard *os.File
	mu       sync.Mutex
	screen   strings.Builder
}

// openConsole starts a shell in a directory, and waits for its prompt. The shell finds windowstat in bin.
func openConsole(t *testing.T, dir, bin string, args ...string) *console {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	fd := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	// A shell asks before it prints a long list, and cuts descriptions that do not fit.
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 200, Col: 200}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	c := exec.Command(args[0], args[1:]...)
	c.Dir = dir
	c.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "ZDOTDIR=" + dir, "TERM=vt100", "LANG=C.UTF-8",
		asCommand + "=quiet",
	}
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	s := &console{keyboard: keyboard}
	go func() {
		b := make([]byte, 1<<12)
		for {
			n, err := keyboard.Read(b)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.screen.Write(b[:n])
			s.mu.Unlock()
		}
	}()
	s.waitFor(t, "ready> ")
	return s
}

// text returns the output of the terminal.
func (s *console) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// waitFor waits for a text in the output of the terminal.
func (s *console) waitFor(t *testing.T, text string) {
	t.Helper()
	waitUntil(t, func() bool { return strings.Contains(s.text(), text) }, func() string {
		return fmt.Sprintf("no %q on the terminal:\n%q", text, s.text())
	})
}

func waitUntil(t *testing.T, done func() bool, problem func() string) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(problem())
		}
	}
}

func (s *console) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// TAB completes commands, flags, texts of flags and names of files, in each shell. windowstat is a script here that
// calls the command for completions, and otherwise records its arguments.
func TestTabCompletes(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and one goroutine completes a line")
	}
	t.Parallel()
	for name, start := range map[string]struct {
		file, text string // the startup file
		shell      []string
	}{
		"bash": {"rc", `
			. <(env STARTUP=1 windowstat completion bash)
			PS1='ready> '
		`, []string{"bash", "--noprofile", "--rcfile", "rc", "-i"}},
		"bash, no word ends at =": {"rc", `
			. <(env STARTUP=1 windowstat completion bash)
			COMP_WORDBREAKS=${COMP_WORDBREAKS//=}
			PS1='ready> '
		`, []string{"bash", "--noprofile", "--rcfile", "rc", "-i"}},
		"zsh": {".zshrc", `
			autoload -U compinit; compinit -u
			. <(env STARTUP=1 windowstat completion zsh)
			PROMPT='ready> '
		`, []string{"zsh", "-i"}},
		"zsh, a file in fpath": {".zshrc", `
			env STARTUP=1 windowstat completion zsh >_windowstat
			fpath=($PWD $fpath)
			autoload -U compinit; compinit -u
			PROMPT='ready> '
		`, []string{"zsh", "-i"}},
		"fish": {".config/fish/config.fish", `
			function fish_prompt; echo 'ready> '; end
			set -g fish_greeting
			env STARTUP=1 windowstat completion fish | source
		`, []string{"fish", "-i"}},
		"fish, a file of its own": {".config/fish/config.fish", `
			function fish_prompt; echo 'ready> '; end
			set -g fish_greeting
			mkdir -p ~/.config/fish/completions
			env STARTUP=1 windowstat completion fish >~/.config/fish/completions/windowstat.fish
		`, []string{"fish", "-i"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(start.shell[0]); err != nil {
				t.Skip(err)
			}
			dir, bin := t.TempDir(), t.TempDir()
			writeFile(t, filepath.Join(dir, start.file), start.text, 0o600)
			writeFile(t, filepath.Join(dir, "access.log"), "", 0o600)
			// Without this directory, fish starts a background process that generates completions from manual pages.
			// The process may outlive the test, and write while the test removes dir.
			if err := os.MkdirAll(filepath.Join(dir, ".local/share/fish/generated_completions"), 0o700); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			record := filepath.Join(dir, "arguments")
			writeFile(t, filepath.Join(bin, "windowstat"), fmt.Sprintf(`#!/bin/sh
for last; do :; done
if [ -n "$STARTUP" ] || [ "$last" = --generate-bash-completion ]; then
	exec %q "$@"
fi
printf '%%s\n' "$@" end >%q.new
mv %[2]q.new %[2]q
`, self, record), 0o700)
			s := openConsole(t, dir, bin, start.shell...)
			for _, tc := range []struct{ typed, want string }{
				{"windowstat pro\t", "proxy"},
				{"windowstat ons\t", "onset"},
				{"windowstat proxy --upst\t", "proxy --upstream"},
				{"windowstat log --dir x --for\t", "log --dir x --format"},
				{"windowstat log --format js\t", "log --format json"},
				{"windowstat log --format=js\t", "log --format=json"},
				{"windowstat replay --follow acc\t", "replay --follow access.log"},
				{"windowstat replay acc\t --format al\t", "replay access.log --format alb"},
				{
					"windowstat proxy --upstream http://x:1 --route 'GET /x' --skip=/y --upstr\t",
					"proxy --upstream http://x:1 --route GET /x --skip=/y --upstream",
				},
				{"windowstat help das\t", "help dashboards"},
				{"windowstat completion fi\t", "completion fish"},
				{"windowstat --vers\t", "--version"},
			} {
				s.press(t, tc.typed+"\r")
				want := strings.ReplaceAll(tc.want, " ", "\n") + "\nend\n"
				want = strings.ReplaceAll(want, "GET\n/x", "GET /x")
				var got []byte
				waitUntil(t, func() bool {
					got, err = os.ReadFile(record)
					return err == nil
				}, func() string { return fmt.Sprintf("%q runs nothing:\n%q", tc.typed, s.text()) })
				if string(got) != want {
					t.Errorf("%q becomes %q, want %q; terminal:\n%q", tc.typed, got, want, s.text())
				}
				if err := os.Remove(record); err != nil {
					t.Fatal(err)
				}
			}
			// Several completions are listed. zsh and fish show their descriptions. fish highlights the typed part.
			s.press(t, "windowstat log --s\t\t")
			wants := []string{"--step", "--summary"}
			if start.shell[0] != "bash" {
				wants = []string{"tep", "ummary", "print sums for each DURATION"}
			}
			for _, want := range wants {
				s.waitFor(t, want)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
