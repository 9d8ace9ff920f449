package sentinellog

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// process is a process whose log is followed, or all processes of an application with [Options].Sum. Follower.mu guards
// its fields.
//
// Consumers have one position for all processes: a second of the Follower's line. A punctual process is exported in its
// own seconds. The rows of a process that writes late arrive when consumers have passed their seconds; then the process
// gets a delay (see end). Each row is therefore exported once, in ascending order of its process, and late rows of one
// process delay no other one. A delay only grows.
type process struct {
	name string // key in the state file: the name of the log, or of the application
	log  metriclog.Log
	sum  bool // log.PID is not used

	labels, values []string // app, and pid if the log has one

	run      int64
	last     int64   // last second with a row; 0 if none
	exported int64   // last second with a row that consumers may have seen; 0 if none
	delays   []delay // ascending
	loaded   int64   // the previous Follower may have exported rows up to this second; 0 after loading

	*history
	past past // rows for consumers that are behind

	rows, late, lost int64 // numbers of rows since the start
}

// delay is the delay of a process in the seconds of the line from At on: data is exported By seconds later.
type delay struct{ At, By int64 }

// maxDelay is the largest delay. Rows that are even later are lost. Prometheus does not take samples that are much
// older than an hour.
const maxDelay = 60 * 60

// newProcess returns the process of a log. from is the first second to keep.
func newProcess(log metriclog.Log, sum bool, from int64) *process {
	p := &process{log: log, sum: sum, history: newHistory(from), run: 1 + rand.Int64N(1<<53-1)}
	if sum {
		p.log.PID = 0
	}
	p.name = p.log.String()
	p.labels, p.values = []string{"app"}, []string{log.App}
	if p.log.PID != 0 {
		p.labels, p.values = append(p.labels, "pid"), append(p.values, strconv.Itoa(log.PID))
	}
	return p
}

// end returns the end of the seconds of the process that are exported before the second t of the line. It never
// decreases with t, and increases by at most 1 with each second.
//
// Example: a process is punctual, and then writes nothing until second 100 of the line, when the rows of 70 arrive. It
// gets the delay {103, 33}. The rows before 70 were exported in their own seconds, and no row existed in 70 to 99.
//
//	t       68  69  70  71  ..  100  ..  103  104
//	end(t)  68  69  70  70  ..   70  ..   70   71
func (p *process) end(t int64) int64 {
	end := int64(math.MaxInt64)
	for i := len(p.delays) - 1; i >= 0; i-- {
		if d := p.delays[i]; t >= d.At {
			return min(end, t-d.By)
		} else {
			end = min(end, d.At-d.By)
		}
	}
	return min(end, t)
}

// add adds a row that was read when all seconds of the line before sealed may have been exported. If consumers could
// see the second of the row within the margin, the process gets a delay: a poll may read a part of a second, or a file
// before an earlier one that was just created, and the next polls read the rest.
func (p *process) add(resource string, r row, sealed, margin int64) {
	p.rows++
	loading := p.loaded != 0
	if r.at < sealed && !loading {
		p.late++
	}
	old := loading && r.at <= p.loaded // the previous Follower has read it, too
	switch exported := r.at < p.end(sealed) && (p.sum || r.at <= p.exported || sealed-r.at > maxDelay); {
	case exported && !old:
		p.lost++
		return
	case !old && !p.sum && r.at < p.end(sealed+margin):
		p.delays = append(p.delays, delay{sealed + margin, sealed + margin - r.at})
	}
	p.last = max(p.last, r.at)
	if !p.history.add(resource, r) {
		p.lost++
	}
}

// export records that consumers may see the seconds of the line before sealed.
func (p *process) export(sealed int64) {
	if i, _ := slices.BinarySearch(p.present, p.end(sealed)); i > 0 {
		p.exported = max(p.exported, p.present[i-1])
	}
}
