package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
)

// enter starts a process of viewers, and waits until each viewer has a stream.
func enter(url string) (leave func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.Command(self, "-look", url, "-viewers", strconv.Itoa(*viewers), "-plain="+strconv.FormatBool(*plain))
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		return nil, errors.Join(err, p.Wait())
	}
	return func() error { return errors.Join(in.Close(), p.Wait()) }, nil
}

// view makes all viewers read their streams until standard input ends, and prints a dot when all are connected.
func view() error {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}} // do not decompress
	for range *viewers {
		r, err := http.NewRequest(http.MethodGet, *look+"stream", nil)
		if err != nil {
			return err
		}
		if !*plain {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("stream: %s", resp.Status)
		}
		go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
	}
	fmt.Print(".")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
