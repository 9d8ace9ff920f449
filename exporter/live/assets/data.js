'use strict';

// What is known: the names of resources by number, the places of columns in a row, and the last seconds, each with the rows
// of what was called in it, by name, and of totals, by number. A second in which the server was away has no rows. Names come
// from strangers; they are only ever set as text.
const KEEP = 180;
const known = { names: [], places: {}, seconds: [], after: 0, epoch: 0, process: 0, away: 0, inbound: true };
const ALL = null; // in the place of a name: the total
const INBOUND = 0, SUM = -1; // numbers of totals: inbound calls, and in seconds before the first of them the sum of the rows
const PASS = 'pass', BLOCK = 'block', EXCEPTION = 'exception', AVERAGE = 'rt_avg', P99 = 'rt_p99', FLIGHT = 'in_flight_max';

const newest = () => known.seconds[known.seconds.length - 1];

// take adds what the server sent. The stream and an answer may overlap, and a server that was started again numbers anew,
// and may have other columns; no second is taken twice, and what was known before stays, with the places it came with.
function take(message) {
  if (message.fresh) {
    if (known.process && known.process !== message.process && newest()) known.away = newest().at;
    const places = Object.fromEntries(message.columns.map((name, i) => [name, i + 1])); // behind the number
    Object.assign(known, { names: [], places, after: 0, epoch: message.epoch, process: message.process });
  }
  if (message.epoch !== known.epoch || message.first > known.names.length) return; // said before the server was away
  known.inbound = message.inbound;
  message.names.forEach((name, i) => { known.names[message.first + i] = name; });
  for (const [at, rows] of message.seconds) {
    known.after = Math.max(known.after, at);
    let last = newest() ? newest().at : at - 1;
    if (Math.abs(at - last) > KEEP) { // the page was asleep, or the clock was set back
      known.seconds = [];
      last = at - 1;
    }
    if (at <= last) continue;
    while (++last < at) known.seconds.push({ at: last, rows: null });
    const named = rows.filter(r => r[0] > 0).map(r => [known.names[r[0]], r]), totals = rows.filter(r => r[0] <= 0).map(r => [r[0], r]);
    known.seconds.push({ at, places: known.places, rows: new Map(named), totals: new Map(totals) });
  }
  known.seconds.splice(0, known.seconds.length - KEEP);
}

// value is one column of a name in a second. In an idle second it is 0, and there is no response time; nor is there a p99
// of a second that was over for long when the page was opened, nor what the server does not send.
function value(second, name, column) {
  if (!second.rows || !(column in second.places)) return null;
  const row = name === ALL ? second.totals.get(known.inbound ? INBOUND : SUM) : second.rows.get(name);
  const n = row ? row[second.places[column]] : column.startsWith('rt_') ? -1 : 0;
  return n < 0 ? null : n;
}

const line = (seconds, name, column) => seconds.map(s => value(s, name, column));
