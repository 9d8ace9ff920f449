package accesslog

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// w3cDirective is the beginning of the line that names the fields of the lines after it.
const w3cDirective = "#Fields:"

// iisFields are the fields of IIS by default.
const iisFields = w3cDirective +
	" date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) " +
	"sc-status sc-substatus sc-win32-status time-taken"

// w3cFields maps the fields that a record needs to their slots. compile skips all others. IIS and CloudFront write the
// time at the end of a call.
var w3cFields = map[string]variable{
	"date":          {slot: timestamp, pattern: "%F", stamp: End},
	"time":          {slot: timestamp, pattern: "%T", stamp: End},
	"c-ip":          {slot: client},
	"cs-method":     {slot: method},
	"cs-uri-stem":   {slot: target, rank: 1},
	"cs-uri":        {slot: target},
	"x-host-header": {slot: host, rank: 3}, // CloudFront's cs(Host) is the name of the distribution
	"cs-host":       {slot: host, rank: 2},
	"cs(Host)":      {slot: host, rank: 1},
	"sc-status":     {slot: status},
	"time-taken":    {slot: duration, unit: milliseconds},
}

// w3cDigits has the skipped fields that are numbers, for the detection of the format.
var w3cDigits = map[string]digits{
	"s-port": digitsOrDash, "c-port": digitsOrDash, "sc-substatus": digitsOrDash, "sc-win32-status": digitsOrDash,
	"sc-bytes": digitsOrDash, "cs-bytes": digitsOrDash,
}

// w3c returns the format of the lines after a #Fields directive of IIS, CloudFront, or another server that writes the
// W3C extended log format. CloudFront separates the fields of its lines with tabs, and logs time-taken in seconds
// instead of milliseconds.
func w3c(directive string) (*Format, error) {
	list := strings.TrimPrefix(directive, w3cDirective)
	separator, unit := " ", milliseconds
	if strings.Contains(list, "x-edge-location") {
		separator, unit = "\t", seconds
	} else if strings.Contains(strings.TrimSpace(list), "\t") {
		separator = "\t"
	}
	// The fields become a format string in which each name has a sign, such as "$date $time $s-ip".
	const sign = '$' // is not part of a field's name
	fields := strings.Fields(list)
	text := ""
	for i, name := range fields {
		if i > 0 {
			text += separator
		}
		text += string(sign) + strings.ReplaceAll(name, string(sign), "")
	}
	read := func(rest string, _ int) (variable, error) { return w3cField(rest, separator, unit), nil }
	f, err := compile(text, sign, false, read)
	if err != nil {
		return nil, fmt.Errorf("the lines after %.500q: %w", directive, err)
	}
	f.name, f.w3c = "w3c", true
	return f, nil
}

// w3cField returns the variable of the field at the beginning of rest.
func w3cField(rest, separator string, unit time.Duration) variable {
	name, _, _ := strings.Cut(rest, separator)
	v := w3cFields[name[1:]]
	v.digits = w3cDigits[name[1:]]
	if v.slot == duration {
		v.unit = unit
	}
	v.name = name
	return v
}

// directive reads a line that begins with #. A W3C log has a #Fields directive at its beginning, and another one
// whenever its fields change. After an invalid directive, all lines up to the next one are malformed.
func (p *Parser) directive(line []byte) {
	if !p.format.w3c || !bytes.HasPrefix(line, []byte(w3cDirective)) {
		return
	}
	f, err := w3c(string(line))
	if err != nil {
		// The prefix matches no line, because unwrap removes NULs.
		f = &Format{name: "w3c", w3c: true, dated: true, prefix: []byte{0}, noPrefix: err}
	}
	p.format = f
}
