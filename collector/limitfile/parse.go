// Package limitfile reads the limits of a Collector from a file, and reloads them when the file changes.
//
//	limits:
//	  - resource: GET /search     # a name
//	    qps: 100
//	  - resource: /admin/*        # a pattern: * matches any characters, also none, and also /
//	    origin: mobile            # calls of one origin; without this field, all origins together
//	    qps: 20
//	    concurrency: 5
//	    strict: true              # qps holds in any second, not only in seconds that begin with a bucket
//	  - resource: GET /search
//	    qps: 80
//	    dry_run: true             # the limit refuses no call; it counts the calls that it would refuse
//
// A service loads the file with [Watch], and reloads it after changes with [Watcher.Run]:
//
//	w, err := limitfile.Watch(c, "limits.yml", logger)
//	…
//	go w.Run(ctx)
//
// The file is YAML, so it can also be JSON. Each entry has a resource and at least one of qps and concurrency. The
// values of qps and concurrency are whole numbers of 0 or more; 0 refuses every call. An origin is a single name. If an
// entry has no origin, all origins share its limits. See [collector.Limit] for the meaning of the fields.
//
// A name that contains ": " or begins with * needs quotes: "db: load user", "*".
//
// A file with errors is rejected as a whole, and the previous limits stay in force. The error lists the first 20 errors
// with their lines, and the number of further errors. A file without the list "limits" is an error, too. To disable all
// limits, use an empty list instead of an empty file.
//
// Errors name the line, the invalid value, and the valid values:
//
//	limits.yml: line 5: qps is "-1"; it must be a whole number of 0 or more
//	line 7: strict is "maybe"; it must be true or false
package limitfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/smallfile"
)

// maxSize is the maximum size of a file in bytes.
const maxSize = 1 << 20

// Read reads the limits from a file. If the file has errors, the error that Read returns lists the first 20 of them and
// the number of further errors.
func Read(path string) ([]collector.Limit, error) {
	// smallfile.Read neither blocks nor uses much memory if path is wrong, for example the path of a pipe or of a large
	// file.
	data, err := smallfile.Read(path, maxSize)
	if err != nil {
		return nil, err
	}
	limits, err := Parse(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return limits, err
}

// Parse parses the text of a file. If the text has errors, the error that Parse returns lists the first 20 of them with
// their lines, and the number of further errors.
func Parse(data []byte) ([]collector.Limit, error) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, errors.New("the file is empty; it must have a list named limits, or limits: []")
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: ") +
			`; names that contain ": " or begin with * need quotes`)
	}
	p := parser{seen: map[collector.Limit]int{}}
	p.file(doc.Content[0])
	// Reject a second YAML document. Otherwise its limits would be ignored silently.
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		p.errs = append(p.errs, errors.New("the file has a second document after ---; only one is allowed"))
	}
	if len(p.errs) > maxErrors {
		p.errs = append(p.errs[:maxErrors:maxErrors], fmt.Errorf("and %d more errors", len(p.errs)-maxErrors))
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return p.limits, nil
}

// maxErrors is the maximum number of reported errors.
const maxErrors = 20

// parser collects limits and errors. It walks the nodes of the YAML document instead of decoding into structs, for two
// reasons. Errors of the decoder contain Go types and do not list the valid values. The decoder also accepts ambiguous
// values, such as 010 or an empty origin.
//
// One entry can set two limits, because a [collector.Limit] has one grade:
//
//	entry                     limits
//	- resource: /admin/*
//	  qps: 20                 {Resource: "/admin/*", Grade: QPS, Count: 20, Strict: true}
//	  concurrency: 5          {Resource: "/admin/*", Grade: Concurrency, Count: 5}
//	  strict: true
//
// strict applies to qps only; dry_run applies to both. An entry with an error is still added to limits, so that a
// second entry for the same resource is reported as a duplicate. Parse discards the limits if there is any error.
type parser struct {
	limits []collector.Limit
	seen   map[collector.Limit]int // line of each limit so far; in the keys, Count and Strict are zero
	errs   []error
}

// errorf records an error with the line of the node n.
func (p *parser) errorf(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("line %d: "+format, append([]any{n.Line}, args...)...))
}

// file parses the top level of the document: a mapping whose only field is "limits". If p.fields has recorded an error,
// file does not report a missing list, because the cause may be a misspelled field name.
func (p *parser) file(n *yaml.Node) {
	fields := p.fields(n, "the file", "limits")
	list := fields["limits"]
	switch {
	case list == nil && len(p.errs) > 0:
	case list == nil:
		p.errorf(n, "the list named limits is missing")
	case list.Kind != yaml.SequenceNode:
		p.errorf(list, "limits is %s; it must be a list, or []", describe(list))
	default:
		for _, entry := range list.Content {
			p.entry(entry)
		}
	}
}

// entry parses one entry of the list, which results in one or two limits.
func (p *parser) entry(n *yaml.Node) {
	fields := p.fields(n, "a limit", "resource", "origin", "qps", "concurrency", "strict", "dry_run")
	if fields == nil {
		return
	}
	var l collector.Limit
	if v := fields["resource"]; v != nil {
		l.Resource = p.text("resource", v, v.Value != "", "it must be a name; use * for all resources")
	} else {
		p.errorf(n, "limit without a resource; use * for all resources")
	}
	if v := fields["origin"]; v != nil {
		// A Collector takes "" for all origins together, and "*" literally. In a file, each of these two values is
		// almost certainly a mistake, so reject both.
		one := v.Value != "" && !strings.Contains(v.Value, "*")
		l.Origin = p.text("origin", v, one, "it must be one name, not a pattern; omit it for all origins")
	}
	l.DryRun = p.flag("dry_run", fields["dry_run"])
	strict := p.flag("strict", fields["strict"])
	switch qps := fields["qps"]; {
	case qps == nil && fields["concurrency"] == nil:
		p.errorf(n, "limit without qps or concurrency")
	case qps == nil && strict:
		p.errorf(n, "strict without qps")
	}
	// The name of a grade is also the name of its field in the file.
	for _, grade := range []collector.Grade{collector.QPS, collector.Concurrency} {
		if v := fields[grade.String()]; v != nil {
			l.Grade, l.Count, l.Strict = grade, p.count(grade.String(), v), strict && grade == collector.QPS
			p.add(n, l)
		}
	}
}

// add appends a limit to p.limits, and records an error if the limit is invalid or a duplicate.
func (p *parser) add(n *yaml.Node, l collector.Limit) {
	// If the limit has no resource, entry has reported that already.
	if l.Resource != "" {
		if err := collector.CheckLimits([]collector.Limit{l}); err != nil {
			p.errorf(n, "%s", strings.ReplaceAll(err.Error(), "limit 1: ", ""))
		}
	}
	// Two limits are duplicates if they differ only in Count and Strict. A limit and a dry run are never duplicates of
	// each other.
	subject := collector.Limit{Resource: l.Resource, Origin: l.Origin, Grade: l.Grade, DryRun: l.DryRun}
	if line, duplicate := p.seen[subject]; duplicate {
		p.errorf(n, "duplicate limit %q; the first is in line %d", subject, line)
	}
	p.seen[subject] = n.Line
	p.limits = append(p.limits, l)
}

// fields returns the values of a mapping by field name. If n is not a mapping, it returns nil. Fields that are not in
// allowed are errors.
func (p *parser) fields(n *yaml.Node, what string, allowed ...string) map[string]*yaml.Node {
	names := strings.Join(allowed, ", ")
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "%s is %s; it must have the fields %s", what, describe(n), names)
		return nil
	}
	fields := map[string]*yaml.Node{}
	// n.Content contains keys and values in turn.
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i]; {
		case fields[key.Value] != nil:
			p.errorf(key, "duplicate field %s", key.Value)
		case !slices.Contains(allowed, key.Value):
			p.errorf(key, "unknown field %.40q; the fields are %s", key.Value, names)
		default:
			fields[key.Value] = n.Content[i+1]
		}
	}
	return fields
}

// text returns the string in n, the value of the field key. If ok is false (the caller has found the string invalid) or
// n is not a scalar, text records an error that ends with want.
func (p *parser) text(key string, n *yaml.Node, ok bool, want string) string {
	if !isScalar(n) || !ok {
		p.errorf(n, "%s is %s; %s", key, describe(n), want)
		return "?" // the empty text would cause a second error
	}
	return n.Value
}

// isScalar reports whether n is a scalar that can be a name, quoted or not. YAML gives 404 the tag of a number and true
// the tag of a boolean, but both are valid names.
func isScalar(n *yaml.Node) bool {
	switch n.Tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Kind == yaml.ScalarNode
	}
	return false
}

// flag returns the boolean in n, the value of the field key, or false if n is nil.
func (p *parser) flag(key string, n *yaml.Node) (v bool) {
	if n != nil && (n.Tag != "!!bool" || n.Decode(&v) != nil) {
		p.errorf(n, "%s is %s; it must be true or false", key, describe(n))
	}
	return v
}

// count returns the whole number in n, the value of the field key. Only the canonical decimal form is valid.
//
//	0, 5, 1000           valid
//	010, 0x10, 1_000     rejected: YAML parsers disagree about the value
//	5.0, 1e3, .inf       rejected: not the decimal form of a whole number
//	-1                   rejected: negative
func (p *parser) count(key string, n *yaml.Node) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	// Reject all forms but the canonical one: 010, for example, is 8 in YAML 1.1, and 10 in YAML 1.2.
	if !isScalar(n) || err != nil || v < 0 || strconv.FormatInt(v, 10) != n.Value {
		p.errorf(n, "%s is %s; it must be a whole number of 0 or more", key, describe(n))
		return 0
	}
	return v
}

// describe returns a description of the value n for error messages.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		if n.Tag == "!!null" || n.Value == "" {
			return "empty"
		}
		// A value that looks valid can have a tag such as !!binary, which makes the value invalid. Show the tag with
		// the value.
		if strings.HasPrefix(n.Tag, "!") && !isScalar(n) {
			return fmt.Sprintf("%.40q with the tag %.40s", n.Value, n.Tag)
		}
		return fmt.Sprintf("%.40q", n.Value)
	}
}
