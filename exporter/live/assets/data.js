'use strict';

// The data that the page has received: the last seconds of the total and of the open resource, and the current page of
// the table. Names are untrusted, so the page only ever sets them as text.
//
// A recorded page contains its data. It has the columns of the metric log: no p99, and the maximum in flight instead of
// the average.
const RECORDED = document.documentElement.classList.contains('recorded');
const KEPT = Number(document.documentElement.dataset.keep); // seconds of history
const MINUTE = 60;
const TOTAL = null; // the subject that is no resource

// UNPRINTABLE matches characters that do not show, or that change how the text around them shows: control characters,
// directional and other format characters, separators of lines, and private ones.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;

// visible returns an untrusted name as the page shows it: unprintable characters are escaped as in Go, such as \x1b or
// \u202e. In such a name a backslash becomes two, so different names stay different.
function visible(name) {
  if (name.search(UNPRINTABLE) < 0) return name;
  return name.replaceAll('\\', '\\\\').replace(UNPRINTABLE, c => {
    const code = c.codePointAt(0), hex = code.toString(16);
    if (code < 0x80) return '\\x' + hex.padStart(2, '0');
    return code > 0xffff ? '\\U' + hex.padStart(8, '0') : '\\u' + hex.padStart(4, '0');
  });
}

// The names of columns in messages: of all seconds, and of the process.
const PASS = 'pass', BLOCK = 'block', COMPLETE = 'complete', EXCEPTION = 'exception';
const AVERAGE = 'rt_avg', P99 = 'rt_p99', FLIGHT = RECORDED ? 'in_flight_max' : 'in_flight_avg';
const CPU = 'cpu', THROTTLED = 'throttled', WAITED = 'waited', MEMORY_EVENTS = 'memory_events', HEAP = 'heap';
const MEMORY = 'memory', STATISTICS = 'statistics', GOROUTINES = 'goroutines', LATENCY = 'latency', PAUSE = 'pause';

// A SecondStore holds the last seconds of the total, of a resource or of the process. Seconds may arrive in any order,
// and more than once. Each second keeps the column indexes of its message, because a restarted server may have others.
class SecondStore {
  constructor() {
    this.seconds = new Map(); // by Unix time
    this.newest = 0;
  }

  // add adds the rows of a message, and drops seconds that are too old for the charts. While the page is paused or
  // zoomed, the seconds in its charts are kept as well.
  add(rows, columnIndex, inbound) {
    for (const row of rows) {
      if (!this.seconds.has(row[0])) this.seconds.set(row[0], { at: row[0], row, columnIndex, inbound });
      this.newest = Math.max(this.newest, row[0]);
    }
    const inReach = (at, last) => at > last - KEPT && at <= last;
    for (const at of this.seconds.keys()) {
      if (inReach(at, this.newest) || paused && inReach(at, paused)) continue;
      if (view.zoom && inReach(at, view.zoom[1] - 1)) continue;
      this.seconds.delete(at);
    }
  }

  // list returns the last seconds up to and including the second last, at most length. A missing second has no row.
  list(length, last) {
    const oldest = Math.min(last + 1, ...this.seconds.keys()), all = [];
    for (let at = Math.max(last - length + 1, oldest); at <= last; at++) {
      all.push(this.seconds.get(at) || { at, row: null });
    }
    return all;
  }
}

// emptyTable is the table before the first message.
const emptyTable = { first: 0, end: 0, rows: [], resources: 0, matches: 0 };

// received is the data that the page has received. The field names of messages are in viewer.go.
const received = {
  process: 0, // identifies the process of the server
  restartedAfter: 0, // last second of the process before; 0 if the server has not restarted
  inbound: true, // whether the total counts inbound calls
  after: '', // position for the next request
  receivedAt: 0, // performance.now() at the last message
  serverNow: 0, // time of the server at the last message, in milliseconds
  lastSecond: 0, // last sealed second
  columnIndex: {}, // column name to its index in a row
  machineColumnIndex: {},
  total: new SecondStore(),
  resource: new SecondStore(), // the open resource
  machine: new SecondStore(), // the process
  resourceExists: true,
  details: null, // of the open resource
  age: -1, // average age of its calls in flight, in microseconds
  running: [], // oldest calls in flight, in groups
  alarm: null, // current trouble of the service
  table: emptyTable,
  entries: new Map(), // rows of the table, by number
};

// applyMessage adds a message of the server. Seconds from before a restart of the server stay, with the column indexes
// of their message.
function applyMessage(message) {
  if (message.fresh) {
    const restarted = received.process && received.process !== message.process;
    if (restarted && received.total.newest) received.restartedAfter = received.total.newest;
    if (message.inbound) { // seconds of the background are no seconds of the inbound total
      for (const s of received.total.seconds.values()) if (!s.inbound) received.total.seconds.delete(s.at);
    }
    const indexes = names => Object.fromEntries(names.map((name, i) => [name, i + 1])); // index 0: time or row number
    received.columnIndex = indexes(message.columns);
    received.machineColumnIndex = indexes(message.machine_columns);
    received.process = message.process;
  }
  if (message.at > 0 && message.at < received.total.newest - KEPT) { // the clock of the server was set back
    received.total = new SecondStore();
    received.resource = new SecondStore();
    received.machine = new SecondStore();
  }
  Object.assign(received, {
    after: message.after, inbound: message.inbound, serverNow: message.now, receivedAt: performance.now(),
    resourceExists: message.resource !== null, age: message.age, running: message.running || [],
    alarm: message.alarm || null,
  });
  if (message.at > 0) received.lastSecond = message.at;
  received.total.add(message.total, received.columnIndex, message.inbound);
  if (received.resourceExists) received.resource.add(message.resource, received.columnIndex);
  received.machine.add(message.machine, received.machineColumnIndex);
  if (message.details) received.details = message.details;
  // A table whose seconds end after the shown range was requested before the user paused or zoomed.
  if (message.table && !(tableRange() && message.table.end > tableRange()[1])) applyTable(message.table);
}

// applyTable replaces the page of the table. A row that was not in the last message contains its name and its small
// chart. Another row extends its small chart with its passes.
function applyTable(table) {
  const entries = new Map();
  for (const { n: number, v, name, past, trouble = '', kind = 0 } of table.rows) {
    const row = [number, ...v], before = received.entries.get(number), { columnIndex } = received;
    if (past) {
      entries.set(number, { number, name, past, row, columnIndex, trouble, kind });
    } else if (before) {
      const extended = [...before.past, row[columnIndex[PASS]]].slice(-MINUTE);
      entries.set(number, { ...before, past: extended, row, columnIndex, trouble, kind });
    }
  }
  received.entries = entries;
  received.table = { ...table, rows: [...entries.values()] };
}

// MICROSECONDS_PER_SECOND are the columns with microseconds spent per second. A million of them is 1: one call in
// flight, or one processor.
const MICROSECONDS_PER_SECOND = new Set(['in_flight_avg', CPU, THROTTLED, WAITED]);

// value returns a column of a second or of a row. Response times are in microseconds. It returns null if the second is
// missing, if it has no such value, or if the server does not send the column.
function value(x, column) {
  const n = x.row ? x.row[x.columnIndex[column]] : undefined;
  if (n === undefined || n < 0) return null;
  return MICROSECONDS_PER_SECOND.has(column) ? n / 1e6 : n;
}

// valuesOf returns a column of several seconds.
const valuesOf = (seconds, column) => seconds.map(s => value(s, column));

// secondsBehind returns the time since the end of the last second, by the clock of the server.
function secondsBehind() {
  if (!received.lastSecond) return 0;
  const serverNow = received.serverNow + performance.now() - received.receivedAt;
  return Math.max(0, serverNow / 1000 - received.lastSecond - 1);
}
