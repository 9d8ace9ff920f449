'use strict';

// What is known: the last seconds of the total and of the resource that is open, and the page of the table. Names come from
// strangers; they are only ever set as text.
// A page that was recorded has them in it, and the log's columns: no p99, and the most in flight in the place of the average.
const RECORDED = document.documentElement.classList.contains('recorded');
const KEEP = Number(document.documentElement.dataset.keep), MINUTE = 60;
const PASS = 'pass', BLOCK = 'block', COMPLETE = 'complete', EXCEPTION = 'exception', AVERAGE = 'rt_avg', P99 = 'rt_p99', FLIGHT = RECORDED ? 'in_flight_max' : 'in_flight_avg';
const FAILED = 'exception_lately', REFUSED = 'block_lately', USUAL = 'rt_usual'; // only of rows
const CPU = 'cpu', THROTTLED = 'throttled', WAITED = 'waited', EVENTS = 'memory_events', HEAP = 'heap', MEMORY = 'memory', GOROUTINES = 'goroutines', LATENCY = 'latency', PAUSE = 'pause'; // of the process
const ALL = null; // in the place of a name: the total

// Past is the last seconds of something, in the order of time. Older ones may come later, and one may come twice.
class Past {
  constructor() { this.seconds = new Map(); this.newest = 0; }

  add(rows, places, inbound) {
    for (const row of rows) {
      if (!this.seconds.has(row[0])) this.seconds.set(row[0], { at: row[0], row, places, inbound });
      this.newest = Math.max(this.newest, row[0]);
    }
    const kept = (at, last) => at > last - KEEP && at <= last;
    for (const at of this.seconds.keys()) if (!kept(at, this.newest) && !(paused && kept(at, paused)) && !(view.zoom && kept(at, view.zoom[1] - 1))) this.seconds.delete(at);
  }

  // list is the last seconds until one. A second that is not known has no row.
  list(length, until) {
    const first = Math.max(until - length + 1, Math.min(until + 1, ...this.seconds.keys())), all = [];
    for (let at = first; at <= until; at++) all.push(this.seconds.get(at) || { at, row: null });
    return all;
  }
}

const nothing = { first: 0, end: 0, rows: [], resources: 0, matches: 0 };
const known = { process: 0, inbound: true, places: {}, after: '', away: 0, heard: 0, now: 0, at: 0, machinePlaces: {}, total: new Past(), resource: new Past(), machine: new Past(), there: true, details: null, age: -1, running: [], table: nothing, entries: new Map() };

// take adds what the server sent. A server that was started again may have other columns; what was known before stays, with the
// places that it came with.
function take(message) {
  if (message.fresh) {
    if (known.process && known.process !== message.process && known.total.newest) known.away = known.total.newest;
    if (message.inbound) for (const s of known.total.seconds.values()) if (!s.inbound) known.total.seconds.delete(s.at); // they are of another total
    known.places = Object.fromEntries(message.columns.map((name, i) => [name, i + 1])); // behind the time, or the number
    known.machinePlaces = Object.fromEntries(message.machine_columns.map((name, i) => [name, i + 1]));
    known.process = message.process;
  }
  if (message.at > 0 && message.at < known.total.newest - KEEP) Object.assign(known, { total: new Past(), resource: new Past(), machine: new Past() }); // the clock was set back
  Object.assign(known, { after: message.after, inbound: message.inbound, now: message.now, heard: performance.now(), there: message.resource !== null, age: message.age, running: message.running || [] });
  if (message.at > 0) known.at = message.at;
  known.total.add(message.total, known.places, message.inbound);
  if (known.there) known.resource.add(message.resource, known.places);
  known.machine.add(message.machine, known.machinePlaces);
  if (message.details) known.details = message.details;
  if (message.table && !(range() && message.table.end > range()[1])) takeTable(message.table); // or it was asked for before the page was paused, or zoomed
}

// takeTable takes a page of the table. Rows that were not in the message before have a name, and the passes of a small chart; the
// charts of the others go on.
function takeTable(table) {
  const entries = new Map();
  for (const { n: number, v, name, past } of table.rows) {
    const row = [number, ...v], before = known.entries.get(number);
    if (past) entries.set(number, { number, name, past, row, places: known.places });
    else if (before) entries.set(number, { ...before, past: [...before.past, row[known.places[PASS]]].slice(-MINUTE), row, places: known.places });
  }
  known.entries = entries;
  known.table = { ...table, rows: [...entries.values()] };
}

const MILLIONTHS = new Set(['in_flight_avg', CPU, THROTTLED, WAITED]); // of seconds in a second: how many there were

// value is one column of a second or of a row, times in microseconds; null if there is no response time, or the server does not send it, or nothing
// is known.
function value(x, column) {
  const n = x.row ? x.row[x.places[column]] : undefined;
  return n === undefined || n < 0 ? null : MILLIONTHS.has(column) ? n / 1e6 : n;
}

const line = (seconds, column) => seconds.map(s => value(s, column));

// behind is for how many seconds the last second has been over, by the clock of the server.
const behind = () => known.at ? Math.max(0, (known.now + performance.now() - known.heard) / 1000 - known.at - 1) : 0;
