// Command gen writes the dashboards as classic JSON, the format of Grafana's provisioning, to the parent directory:
//
//	go run . -out ..
//
// It is a separate module, so windowstat does not depend on Grafana's SDK. The JSON is committed; a test checks that it
// is current.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// boards lists all dashboards. The uid of a dashboard is windowstat- and the name of its file.
var boards = map[string]func() (file, error){
	"overview": overview,
	"resource": resource,
	"self":     self,
}

func main() {
	out := flag.String("out", "..", "`DIR` that the dashboards go to")
	flag.Parse()
	for name, build := range boards {
		text, err := render(build)
		if err == nil {
			err = os.WriteFile(filepath.Join(*out, name+".json"), text, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// render returns the text of a dashboard's file.
func render(build func() (file, error)) ([]byte, error) {
	d, err := build()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // expressions have < and > in them
	e.SetIndent("", "  ")
	err = e.Encode(d)
	return text.Bytes(), err
}
