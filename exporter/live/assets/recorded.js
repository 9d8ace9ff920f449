'use strict';

// The data source of a recorded page, which replaces follow.js and the server. It defines the same functions. The page
// contains its seconds as compressed JSON: for each resource and each column a list with a number for each second.
const recording = {
  span: null, // [first second, second after the last], once the data is unpacked
  offset: 0, // offset of the shown times from UTC, in seconds
  columns: [PASS, BLOCK, COMPLETE, EXCEPTION, AVERAGE, FLIGHT],
  total: null,
  resources: [],
  onMessage: null,
};

// connect unpacks the data and shows the page.
async function connect(onMessage) {
  try {
    const bytes = Uint8Array.from(atob(byId('recording').textContent.trim()), c => c.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    Object.assign(recording, await new Response(unpacked).json());
  } catch (e) {
    return showStatus('the seconds cannot be read: ' + e.message, true);
  }
  recording.offset /= 1e9; // from nanoseconds
  recording.span = [recording.first, recording.first + KEPT];
  // Index 0 of a row is the time of a second, or the number of a resource.
  received.columnIndex = Object.fromEntries(recording.columns.map((name, i) => [name, i + 1]));
  received.total.add(rowsOf(recording.total), received.columnIndex, true);
  recording.resources.forEach((r, i) => Object.assign(r, { number: i + 1, lower: r.name.toLowerCase() }));
  recording.onMessage = onMessage;
  restoreAddress();
  reconnect();
}

// rowsOf returns the seconds of a resource in the layout of a message.
const rowsOf = r => Array.from({ length: KEPT }, (_, i) => [
  recording.first + i, ...recording.columns.map(name => r[name][i]),
]);

// reconnect selects the data for the current query and calls onMessage, as a message of a server would.
function reconnect() {
  if (!recording.onMessage) return;
  const r = recording.resources.find(x => x.name === subject);
  if (r && !received.resource.newest) received.resource.add(rowsOf(r), received.columnIndex, true);
  const limits = r && (r.limits || []).map(l => ({ name: ['qps', 'concurrency'][l.Grade], pass: l.Count }));
  Object.assign(received, {
    resourceExists: !!r, details: r ? { limits } : null, table: selectTable(currentQuery()),
  });
  const onMessage = recording.onMessage;
  recording.onMessage = null; // onMessage calls reconnect
  onMessage('recorded: nothing here changes');
  recording.onMessage = onMessage;
}

// There is no connection, so nothing can be out of sync.
const disconnect = () => {};
const inSync = () => true;

// selectTable returns a page of the table in the layout of received.table, as the server would send it: sums over the
// shown seconds, and small charts with the highest passes of each group of seconds.
function selectTable(q) {
  const [first, end] = tableRange().map(t => t - recording.first);
  const rows = recording.resources.filter(r => r.lower.includes(q.search.toLowerCase())).map(r => rowOf(r, first, end));
  const keys = {
    name: () => [0],
    [TROUBLE]: x => [x.rank, value(x, PASS)],
    [PEAK]: x => [Math.max(...x.past)],
  }[q.sort] || (x => [value(x, q.sort)]);
  const byName = (a, b) => a.lower < b.lower ? -1 : a.lower > b.lower ? 1 : a.number - b.number;
  const byKeys = (a, b) => keys(b).map((k, i) => k - keys(a)[i]).find(d => d) || byName(a, b);
  rows.sort((a, b) => q.up === 'true' ? byKeys(b, a) : byKeys(a, b));
  const offset = Number(q.from);
  return {
    first: tableRange()[0], end: tableRange()[1], rows: rows.slice(offset, offset + ROWS),
    resources: recording.resources.length, matches: rows.length,
  };
}

// rowOf returns the row of a resource over the seconds with the indexes from first up to end.
function rowOf(r, first, end) {
  const of = name => r[name].slice(first, end), sum = list => list.reduce((a, b) => a + b, 0);
  const pass = of(PASS), complete = of(COMPLETE);
  // Counts are summed. The average response time is weighted by completed calls; the others have a maximum.
  const merge = {
    [AVERAGE]: list => sum(complete) ? sum(list.map((v, i) => v * complete[i])) / sum(complete) : -1,
    [FLIGHT]: list => Math.max(...list),
  };
  const merged = recording.columns.map(name => (merge[name] || sum)(of(name)));
  const row = [r.number, ...merged];
  const past = [], group = Math.ceil((end - first) / MINUTE);
  for (let i = 0; i < pass.length; i += group) past.push(Math.max(...pass.slice(i, i + group)));
  // The worst trouble that is found in one of the seconds.
  const none = { rank: 0, kind: 0, text: '' };
  const worst = (r.troubles || []).filter(t => t.first < end && t.end > first)
    .reduce((a, b) => b.rank > a.rank ? b : a, none);
  const { rank, kind, text: trouble } = worst;
  const { columnIndex } = received;
  return { number: r.number, name: r.name, lower: r.lower, past, row, columnIndex, trouble, kind, rank };
}

// showTime shows the date and the time range of the recording.
function showTime() {
  if (!recording.span) return;
  const date = new Date((recording.first + recording.offset) * 1000).toISOString().slice(0, 10);
  byId('second').textContent = date + ', ' + formatRange(recording.span);
}

// showStatus shows the status of the page, in red if bad is true.
function showStatus(text, bad) {
  byId('state').textContent = text;
  byId('state').classList.toggle('bad', !!bad);
}
