package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var block = regexp.MustCompile("(?ms)^```(go)?\n(.*?)^```$")

// firstMinute follows the README's Install section literally, except for the addresses, in an empty module: it gets the
// package, writes the program, runs it, and reads a number.
func (s stranger) firstMinute(t *testing.T, r repository) {
	began := time.Now()
	done := func(what string) { t.Logf("%5.1f s  %s", time.Since(began).Seconds(), what) }
	page := string(must(os.ReadFile(r.path("README.md")))(t))
	_, page, _ = strings.Cut(page, "## Install\n")
	blocks := block.FindAllStringSubmatch(page, 3)
	if len(blocks) != 3 || blocks[0][1] != "" || blocks[1][1] != "go" || blocks[2][1] != "" {
		t.Fatalf("below Install the README has not a command, a program and commands, but %q", blocks)
	}
	addresses := strings.NewReplacer("localhost:8080", free(t), "localhost:9719", free(t))
	get, program, commands := blocks[0][2], addresses.Replace(blocks[1][2]), addresses.Replace(blocks[2][2])

	var env []string // -mod=mod would add requirements to go.mod that the command omits
	for _, v := range s.env {
		if !strings.HasPrefix(v, "GOFLAGS=") {
			env = append(env, v)
		}
	}
	s = stranger{env: append(env, "GOFLAGS=-modcacherw -trimpath"), bin: s.bin}
	dir := t.TempDir()
	s.run(t, dir, "go", "mod", "init", "example.com/shop")
	s.run(t, dir, "sh", "-ec", get)
	done(strings.TrimSpace(get))
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	service := exec.Command("go", "run", ".")
	service.Dir, service.Env, service.Stderr = dir, s.env, os.Stderr
	service.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for go and for the program
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- service.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-service.Process.Pid, syscall.SIGKILL) })
	for _, address := range []string{"localhost:8080", "localhost:9719"} {
		for {
			if c, err := net.Dial("tcp", addresses.Replace(address)); err == nil {
				_ = c.Close()
				break
			}
			select {
			case err := <-ended:
				t.Fatalf("go run . ended: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	done("go run . answers")
	out := s.run(t, dir, "sh", "-ec", commands)
	done("the commands have run")
	t.Logf("\n%s%s", commands, out)
	sum := 0
	for line := range strings.Lines(out) {
		value, ok := strings.CutPrefix(line, `windowstat_persecond_pass{resource="GET /hello/{name}"} `)
		value, _, _ = strings.Cut(value, " ")
		n, err := strconv.Atoi(value)
		if !ok || err != nil {
			t.Errorf("line %q (%v)", line, err)
		}
		sum += n
	}
	if sum != 300 {
		t.Errorf("%d calls were counted, want 300", sum)
	}
	_ = syscall.Kill(-service.Process.Pid, syscall.SIGINT)
	<-ended // go run says 1 of every program that Ctrl-C ended
}

// free returns an unused local address.
func free(t *testing.T) string {
	l := must(net.Listen("tcp", "localhost:0"))(t)
	defer l.Close()
	return "localhost:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
