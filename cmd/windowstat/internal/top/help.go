package top

import "fmt"

// helpKeys are the keys, which the last line of the screen has the most important of.
var helpKeys = [][2]string{
	{"q", "quit"},
	{"/", "show resources with a text in their name; esc shows all"},
	{"← →  1 to 8", "sort by another column; the same again, or r, reverses"},
	{"↑ ↓  j k", "select; PgUp, PgDn, Home, End"},
	{"enter", "the seconds of what is selected, its limits and refusals; esc back"},
	{"[ ]  { }", "back and forth in time by a second, or ten; End returns to now"},
	{"space", "stay at this second; again, return to now"},
	{"t", "several targets: a line for each, or added up"},
}

// helpLines are what ? shows.
func helpLines() (list []string) {
	for _, k := range helpKeys {
		list = append(list, fmt.Sprintf("%-12s %s", k[0], k[1]))
	}
	list = append(list, "")
	for _, c := range columns {
		list = append(list, fmt.Sprintf("%-12s %s", c.title, c.about))
	}
	return append(list, "",
		"Added up, P99 and PEAK are those of the target where they are highest:",
		"they add up to nothing. A - is not known, or there is none.")
}
