// Command release makes a release of all modules that users import, which share one version.
//
//	go run ./release make v0.2.0    checks, pins the version in each module, closes the changelog's section,
//	                                commits and tags
//	go run ./release api            prints the changes of the exported API since the last release
//
// make release and make api run this command in the directory tools. It pushes nothing.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	if err := run(repository{".."}, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(r repository, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "make":
		if err := r.release(args[1], time.Now(), r.test); err != nil {
			return err
		}
		push, err := r.push(args[1])
		fmt.Printf("%s is committed and tagged. To publish it:\n\n\t%s\n\n", args[1], push)
		return err
	case len(args) == 1 && args[0] == "api":
		change, err := r.api(os.Stdout)
		if err == nil && change.last != "" {
			fmt.Printf("the next version is at least %s\n", change.next())
		}
		return err
	}
	return errors.New("usage: release make VERSION, or release api")
}

// test runs the checks that must pass before a release.
func (r repository) test() error {
	c := exec.Command("make", "-C", r.dir, "test", "check", "e2e")
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}
