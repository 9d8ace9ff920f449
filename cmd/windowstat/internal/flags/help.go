package flags

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// width is the maximum width of a line of help, in columns. The templates of the library do not wrap the usages of
// flags. They also align the usages in a column after the longest name, which leaves little space for the text.
const width = 80

// commandHelp returns the help of a command, in sections, as in a manual page.
func commandHelp(c *cli.Command) string {
	var b strings.Builder
	usage := "windowstat " + c.Name
	if len(c.Flags) > 1 { // more than --help
		usage += " [options]"
	}
	section(&b, "NAME", "windowstat "+c.Name+" - "+c.Usage)
	section(&b, "USAGE", usage+" "+c.ArgsUsage)
	section(&b, "DESCRIPTION", c.Description)
	options(&b, "OPTIONS", c.Flags)
	return b.String()
}

// appHelp returns the help of the root command.
func appHelp(app *cli.App) string {
	var b strings.Builder
	section(&b, "NAME", app.Name+" - "+app.Usage)
	section(&b, "USAGE", app.Name+" COMMAND [options] [arguments]")
	section(&b, "VERSION", app.Version)
	section(&b, "DESCRIPTION", app.Description)
	b.WriteString("\nCOMMANDS:\n")
	// The names of commands are short, so their usages are aligned in a second column.
	widest := 0
	for _, c := range app.Commands {
		widest = max(widest, len(strings.Join(c.Names(), ", ")))
	}
	for _, c := range app.Commands {
		names := fmt.Sprintf("   %-*s  ", widest, strings.Join(c.Names(), ", "))
		b.WriteString(names + strings.TrimLeft(wrap(c.Usage, len(names)), " "))
	}
	options(&b, "GLOBAL OPTIONS", app.Flags)
	return b.String()
}

// section writes a heading and its text, wrapped; nothing if the text is empty. Lines that begin with a space are
// examples: each one keeps its indentation and is a paragraph. All other lines up to an empty one are one paragraph.
func section(b *strings.Builder, heading, text string) {
	if text == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	b.WriteString(heading + ":\n")
	paragraph := ""
	flush := func() {
		b.WriteString(wrap(paragraph, 3))
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		switch trimmed := strings.TrimLeft(line, " "); {
		case trimmed == "":
			flush()
			b.WriteString("\n")
		case trimmed != line: // an example
			flush()
			b.WriteString(wrap(trimmed, 3+len(line)-len(trimmed)))
		default:
			paragraph += " " + line
		}
	}
	flush()
}

// options writes the flags by category. The first flags have no category and no heading. Categories and the flags in
// them have the order of the set.
func options(b *strings.Builder, heading string, flags []cli.Flag) {
	b.WriteString("\n" + heading + ":\n")
	var categories []string
	byCategory := map[string][]string{}
	for _, f := range flags {
		category := f.(cli.CategorizableFlag).GetCategory()
		if byCategory[category] == nil {
			categories = append(categories, category)
		}
		byCategory[category] = append(byCategory[category], option(f))
	}
	// Flags without a category, which include --help, are first.
	b.WriteString(strings.Join(byCategory[""], ""))
	for _, category := range categories {
		if category != "" {
			b.WriteString("\n   " + category + "\n\n" + strings.Join(byCategory[category], ""))
		}
	}
}

// option returns the help of a flag: a line with its names and the name of its text, and below it the usage, the
// default and the environment variable.
//
//	--upstream URL
//	    URL of the service, such as http://127.0.0.1:8000 (required) [$WINDOWSTAT_UPSTREAM]
func option(f cli.Flag) string {
	doc := f.(cli.DocGenerationFlag)
	var names []string
	for _, name := range f.Names() {
		names = append(names, Name(name))
	}
	head, usage := strings.Join(names, ", "), doc.GetUsage()
	if v := valueOf(f); v != nil {
		if !v.isSwitch {
			head += " " + placeholder(usage)
			if text := doc.GetDefaultText(); text != "" {
				usage += fmt.Sprintf(" (default: %s)", text)
			}
		}
		usage += " [$" + Variable(f.Names()[0]) + "]"
	}
	return "   " + head + "\n" + wrap(strings.ReplaceAll(usage, "`", ""), 7)
}

// placeholder returns the name of a flag's text for the help: the word in backquotes in the usage, as in package flag.
func placeholder(usage string) string {
	_, after, _ := strings.Cut(usage, "`")
	name, _, _ := strings.Cut(after, "`")
	if name == "" {
		// The usage names no text.
		return "VALUE"
	}
	return name
}

// wrap returns the words of a text in lines of at most width columns that begin with an indentation. A longer word has
// its own line.
func wrap(text string, indentation int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		// Count characters, not bytes: help texts contain characters such as … that take several bytes.
		n := utf8.RuneCountInString(word)
		switch {
		// The first word of a line has no space before it and is never moved to another line.
		case column == 0:
		case column+1+n > width:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		if column == 0 {
			b.WriteString(strings.Repeat(" ", indentation))
			column = indentation
		}
		b.WriteString(word)
		column += n
	}
	if column > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// escape returns a text/template that prints a text: the library accepts help only as a template.
func escape(text string) string {
	return strings.ReplaceAll(text, "{{", `{{"{{"}}`)
}
