package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/remote"
)

func main() {
	c, _ := collector.New(collector.Options{})
	for addr, o := range map[string]prom.SecondsOptions{"127.0.0.1:32001": {MaxSamples: 1}, "127.0.0.1:32002": {}, "127.0.0.1:32003": {}} {
		page, err := prom.NewSeconds(c, o)
		if err != nil {
			log.Fatal(err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			log.Fatal(err)
		}
		begin := time.Now()
		var h http.Handler = page
		if o.MaxSamples == 1 {
			h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if d := time.Since(begin); d > 20*time.Second && d < 30*time.Second {
					http.Error(w, "down", 500)
					return
				}
				page.ServeHTTP(w, r)
			})
		}
		go func() { log.Fatal(http.Serve(page.Watch(l), h)) }()
	}
	w, err := remote.New(c, remote.Options{URL: "http://127.0.0.1:32011/api/v1/receive", Labels: map[string]string{"job": "pushed", "instance": "e2e"}})
	if err != nil {
		log.Fatal(err)
	}
	w2, err := remote.New(c, remote.Options{URL: "http://127.0.0.1:32011/api/v1/receive", Labels: map[string]string{"job": "pushed", "instance": "e2e"}, Metrics: []string{"windowstat_persecond_pass"}})
	_ = w2
	_ = err
	stop := w.Start()
	total := 0
	for begin := time.Now(); time.Since(begin) < 45*time.Second; time.Sleep(100 * time.Millisecond) {
		for i := range 20 {
			for range 1 + i%3 {
				c.Resource(fmt.Sprint("GET /items/", i)).Enter().Exit(nil)
				total++
			}
		}
	}
	_ = context.Background
	if err := stop(); err != nil {
		log.Print(err)
	}
	for _, m := range c.Metrics() {
		m.Each(func(v float64, l ...string) {
			if len(m.Name) > 4 && m.Name[:4] == "push" {
				fmt.Println(m.Name, v, l)
			}
		})
	}
	fmt.Println("total", total)
	time.Sleep(25 * time.Second)
}
