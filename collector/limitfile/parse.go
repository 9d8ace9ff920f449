// Package limitfile reads the limits of a Collector from a file, and reads them again when it changes.
//
//	limits:
//	  - resource: GET /search     # a name
//	    qps: 100
//	  - resource: /admin/*        # a pattern: * stands for any run of characters, none and / included
//	    origin: mobile            # the calls of one origin; without it, of all together
//	    qps: 20
//	    concurrency: 5
//	    strict: true              # in any second, not only in those that begin when a bucket does
//	  - resource: GET /search
//	    qps: 80
//	    dry_run: true             # refuses nothing, and counts what it would refuse
//
// The file is YAML, and so may be JSON. Each entry has a resource, and qps or concurrency or both, whole numbers of 0 or
// more; 0 refuses every call. An origin is one name; where there is none, all origins share the limit. See
// [collector.Limit] for what they mean.
//
// A name with ": " in it, or with a * in front, needs quotes: "db: load user", "*".
//
// A file with a mistake is refused whole, with its mistakes and their lines in the error, and the limits that were
// in force stay. So is one without a list: limits are switched off by an empty one, not by an empty file.
package limitfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/collector"
)

// maxSize is how long a file may be, in bytes.
const maxSize = 1 << 20

// Read reads the limits from a file. The error names every mistake in it.
func Read(path string) ([]collector.Limit, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // to read from a pipe is to wait
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxSize:
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	limits, err := Parse(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return limits, err
}

// Parse reads the limits from the text of a file. The error names every mistake in it, with its line.
func Parse(data []byte) ([]collector.Limit, error) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, errors.New("the file is empty; a list named limits is needed, [] for none")
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: ") + "; names with a : or an * in front need quotes")
	}
	p := parser{seen: map[collector.Limit]int{}}
	p.file(doc.Content[0])
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		p.errs = append(p.errs, errors.New("there is a second document after ---; one is all that is read"))
	}
	if len(p.errs) > maxMistakes {
		p.errs = append(p.errs[:maxMistakes:maxMistakes], fmt.Errorf("and %d mistakes more", len(p.errs)-maxMistakes))
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return p.limits, nil
}

// maxMistakes is how many mistakes are reported.
const maxMistakes = 20

// parser collects limits and mistakes. It walks the nodes of the document and decodes nothing into structs: their errors name types
// of Go, and know neither what is allowed nor which of two meanings a value such as 010 or an empty origin has.
type parser struct {
	limits []collector.Limit
	seen   map[collector.Limit]int // line of each, without its count
	errs   []error
}

func (p *parser) wrong(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("line %d: "+format, append([]any{n.Line}, args...)...))
}

func (p *parser) file(n *yaml.Node) {
	fields := p.fields(n, "the file", "limits")
	list := fields["limits"]
	switch {
	case list == nil && len(p.errs) > 0:
	case list == nil:
		p.wrong(n, "there is no list named limits")
	case list.Kind != yaml.SequenceNode:
		p.wrong(list, "limits is %s; a list is needed, [] for none", kind(list))
	default:
		for _, entry := range list.Content {
			p.entry(entry)
		}
	}
}

// entry reads one entry, which may be two limits.
func (p *parser) entry(n *yaml.Node) {
	fields := p.fields(n, "a limit", "resource", "origin", "qps", "concurrency", "strict", "dry_run")
	if fields == nil {
		return
	}
	var l collector.Limit
	if v := fields["resource"]; v != nil {
		l.Resource = p.text("resource", v, true, "a name is needed")
	} else {
		p.wrong(n, "a limit without a resource; * is for all")
	}
	if v := fields["origin"]; v != nil {
		// To a Collector the empty origin is all together, and a * is a * like any other; who writes either into a file means
		// something else.
		one := v.Value != "" && !strings.Contains(v.Value, "*")
		l.Origin = p.text("origin", v, one, "one name is needed, no pattern; without the field the limit is for all origins together")
	}
	l.DryRun = p.flag("dry_run", fields["dry_run"])
	strict := p.flag("strict", fields["strict"])
	switch qps := fields["qps"]; {
	case qps == nil && fields["concurrency"] == nil:
		p.wrong(n, "a limit of nothing; qps or concurrency is needed")
	case qps == nil && strict:
		p.wrong(n, "strict without qps")
	}
	for _, grade := range []collector.Grade{collector.QPS, collector.Concurrency} {
		if v := fields[grade.String()]; v != nil {
			l.Grade, l.Count, l.Strict = grade, p.count(grade.String(), v), strict && grade == collector.QPS
			p.add(n, l)
		}
	}
}

// add adds a limit, if there is nothing wrong with it.
func (p *parser) add(n *yaml.Node, l collector.Limit) {
	if l.Resource != "" {
		if err := collector.CheckLimits([]collector.Limit{l}); err != nil {
			p.wrong(n, "%s", strings.ReplaceAll(err.Error(), "limit 1: ", ""))
		}
	}
	subject := collector.Limit{Resource: l.Resource, Origin: l.Origin, Grade: l.Grade, DryRun: l.DryRun}
	if line, twice := p.seen[subject]; twice {
		p.wrong(n, "%q is limited in line %d already", subject, line)
	}
	p.seen[subject] = n.Line
	p.limits = append(p.limits, l)
}

// fields returns the fields of a mapping that are known, nil if it is none.
func (p *parser) fields(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	names := strings.Join(known, ", ")
	if n.Kind != yaml.MappingNode {
		p.wrong(n, "%s is %s; fields are needed: %s", what, kind(n), names)
		return nil
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i]; {
		case fields[key.Value] != nil:
			p.wrong(key, "%s is there twice", key.Value)
		case !slices.Contains(known, key.Value):
			p.wrong(key, "there is no field %.40q; the fields are %s", key.Value, names)
		default:
			fields[key.Value] = n.Content[i+1]
		}
	}
	return fields
}

// text reads a name, if that is ok.
func (p *parser) text(key string, n *yaml.Node, ok bool, needed string) string {
	if !name(n) || !ok {
		p.wrong(n, "%s is %s; %s", key, kind(n), needed)
		return "?" // one mistake is enough
	}
	return n.Value
}

// name reports whether a value is a plain one, quoted or not: YAML takes 404 and true for no text, but names they can be.
func name(n *yaml.Node) bool {
	switch n.Tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Kind == yaml.ScalarNode
	}
	return false
}

// flag reads true or false; false if there is none.
func (p *parser) flag(key string, n *yaml.Node) (v bool) {
	if n != nil && (n.Tag != "!!bool" || n.Decode(&v) != nil) {
		p.wrong(n, "%s is %s; true or false is needed", key, kind(n))
	}
	return v
}

func (p *parser) count(key string, n *yaml.Node) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	// 010 is 8 to some readers of YAML, and 10 to others.
	if !name(n) || err != nil || v < 0 || strconv.FormatInt(v, 10) != n.Value {
		p.wrong(n, "%s is %s; a whole number of 0 or more is needed", key, kind(n))
		return 0
	}
	return v
}

// kind describes a value in an error.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		if n.Tag == "!!null" || n.Value == "" {
			return "empty"
		}
		if strings.HasPrefix(n.Tag, "!") && !name(n) {
			return fmt.Sprintf("%.40q with the tag %.40s", n.Value, n.Tag)
		}
		return fmt.Sprintf("%.40q", n.Value)
	}
}
