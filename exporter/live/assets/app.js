'use strict';

// The view of the page: its charts and figures, the actions of the user, and the address that preserves them.
//
//   file                    task
//   chart.js                charts, formats of numbers
//   data.js                 received seconds and table rows
//   table.js                table of resources, query for the server
//   follow.js, recorded.js  source of the data: a server, or the page itself
//   app.js                  everything else

const byId = id => document.getElementById(id);
const charts = {};

// The user's choices, which the address preserves.
const view = {
  sort: TROUBLE, descending: true, // order of the table
  search: '',
  page: 0, // of the table
  minutes: 3, // of the charts
  zoom: null, // [first second, second after the last] of the charts, or null for the last minutes
  commonScale: false, // of the small charts
};
let subject = TOTAL; // the open resource, or the total
let paused = 0; // the last second of a paused page; otherwise 0
let cursorAt = null; // the second under the cursor

const subjectStore = () => subject === TOTAL ? received.total : received.resource;
const lastShown = () => paused || received.total.newest;

// shownSeconds returns the seconds in the charts.
function shownSeconds() {
  const { zoom, minutes } = view;
  return zoom ? subjectStore().list(zoom[1] - zoom[0], zoom[1] - 1) : subjectStore().list(minutes * 60, lastShown());
}

// unzoomedRange is view.zoom before the user zooms: a recorded page shows all of its seconds.
const unzoomedRange = () => RECORDED ? recording.span : null;
const isUnzoomed = () => !view.zoom || RECORDED && view.zoom[1] - view.zoom[0] === KEPT;

// isLive reports whether the page shows the current second. Otherwise it hides data about the current calls, because
// the data does not belong to the seconds in the charts.
const isLive = () => !RECORDED && !paused && !view.zoom;

// element creates an element. The text is set as text, so names cannot contain markup.
function element(name, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  return e;
}

// titleOf names a subject. The total counts the inbound calls of the service. A service without inbound calls, such as
// a worker, shows the background instead.
function titleOf(name) {
  if (name !== TOTAL) return visible(name);
  return received.inbound ? 'All inbound calls' : 'Background: all outermost calls; none was inbound';
}

// draw updates the whole page.
function draw() {
  byId('subject').textContent = titleOf(subject);
  byId('gone').hidden = subject === TOTAL || received.resourceExists;
  byId('unzoom').hidden = isUnzoomed();
  drawTable();
  const seconds = shownSeconds();
  drawCharts(seconds);
  drawProcess();
  // The charts have moved, so the cursor must follow its second. uPlot updates its scales in a microtask.
  if (cursorAt === null) drawFigures(seconds); else queueMicrotask(() => setCursor(cursorAt));
  showTime();
  drawAlarm();
  byId('running').hidden = subject !== TOTAL || !isLive() || !received.running.length;
  byId('running').replaceChildren(runningTable(received.running)); // below the table, so no row moves
  if (subject !== TOTAL && received.details && !RECORDED) drawDetails(received.details);
}

// drawAlarm describes the worst trouble in one sentence. The text is only set when it changes, because screen readers
// announce it. A paused or zoomed page hides the sentence, because it describes the current second.
function drawAlarm() {
  const alarm = isLive() && received.alarm;
  const text = alarm ? visible(alarm.before) + formatTime(alarm.since) + visible(alarm.after) : '';
  if (byId('alarm').textContent !== text) byId('alarm').textContent = text;
}

// isInTrouble reports whether a resource is in trouble now.
const isInTrouble = name => received.alarm !== null && received.alarm.list.some(x => x.resource === name);

// drawCharts draws the charts of the subject.
function drawCharts(seconds) {
  const column = c => valuesOf(seconds, c), times = seconds.map(s => s.at);
  const limits = subject !== TOTAL && received.details ? received.details.limits : [];
  // The limit on QPS belongs to the chart of calls, the limit on concurrency to the chart of calls in flight.
  for (const [chart, name] of [['calls', 'qps'], ['flight', 'concurrency']]) {
    const limit = limits.find(l => l.name === name);
    charts[chart].limit = limit ? limit.pass || 0 : null;
    byId(name).textContent = limit ? '; the limit is ' + formatCount(limit.pass || 0) : '';
  }
  charts.calls.show([times, column(PASS), column(BLOCK), column(EXCEPTION)]);
  charts.times.show([times, column(AVERAGE), column(P99)]);
  charts.flight.show([times, column(FLIGHT)]);
  // Histograms are kept for less time than averages, so the p99 may begin later.
  const firstP99 = seconds.find(s => value(s, P99) !== null);
  const lacksP99 = seconds.some(s => value(s, AVERAGE) !== null && (!firstP99 || s.at < firstP99.at));
  let note = '';
  if (lacksP99 && !RECORDED) {
    note = firstP99 ? '; p99 from ' + formatTime(firstP99.at) + ' on' : '; the p99 is not known any more';
  }
  byId('timed').textContent = note; // a recording never has a p99, so it needs no note
}

// drawProcess draws the charts of the process, over the same seconds as the other charts.
function drawProcess() {
  // The process has no total and no resources, so its charts are the same for every subject.
  const [first, end] = chartRange(lastShown()), seconds = received.machine.list(end - first, end - 1);
  const column = c => valuesOf(seconds, c), times = seconds.map(s => s.at);
  charts.cpu.show([times, column(CPU), column(THROTTLED), column(WAITED)]);
  charts.memory.show([times, column(HEAP), column(STATISTICS), column(MEMORY)]);
  charts.delays.show([times, column(LATENCY), column(PAUSE)]);
  charts.goroutines.show([times, column(GOROUTINES)]);
  const events = column(MEMORY_EVENTS).reduce((a, b) => a + b, 0);
  byId('events').textContent = events ? '; ' + formatCount(events) + ' times at its limit' : '';
  const begin = seconds.length && seconds[0].at > first ? formatTime(seconds[0].at) : '';
  byId('measured').textContent = begin && ', measured from ' + begin + ' on';
}

// drawFigures shows the numbers of the second under the cursor, of the zoomed range, or of the last second.
function drawFigures(seconds) {
  const underCursor = cursorAt !== null && seconds.find(s => s.at === cursorAt);
  const all = underCursor ? [underCursor] : view.zoom ? seconds : subjectStore().list(1, lastShown());
  byId('when').textContent = figuresTitle(all, underCursor);
  byId('now').replaceChildren(...figuresOf(all, seconds, underCursor).map(([k, v, bad]) => {
    const box = element('div');
    box.append(element('dt', k), element('dd', v, bad ? { class: 'bad' } : {}));
    return box;
  }));
}

// figuresTitle describes the seconds that the figures cover.
function figuresTitle(all, underCursor) {
  if (!all.length) return '';
  if (underCursor) return 'Under the cursor: ' + formatTime(underCursor.at);
  if (view.zoom) return (isUnzoomed() ? 'All ' : 'Zoomed to ') + formatRange(view.zoom);
  return 'The second ' + formatTime(all[0].at);
}

// figuresOf returns figures: a label, a text, and whether the number is trouble. The list all holds the seconds that the
// numbers cover, and seconds holds the seconds in the charts.
function figuresOf(all, seconds, underCursor) {
  const sum = list => list.reduce((a, b) => a + b, 0), highest = list => Math.max(...list);
  const merge = (c, f) => { // merges the values of a column; null without values
    const list = all.map(s => value(s, c)).filter(n => n !== null);
    return list.length ? f(list) : null;
  };
  // The average of several seconds weights each second by its completed calls.
  const rtSum = sum(all.map(s => value(s, AVERAGE) * value(s, COMPLETE))), complete = merge(COMPLETE, sum);
  const average = complete && merge(AVERAGE, sum) !== null ? rtSum / complete : null;
  const busiest = seconds.reduce((a, s) => value(s, PASS) > value(a, PASS) ? s : a, seconds[0] || { row: null });
  const figures = [
    ['Pass', formatCount(merge(PASS, sum))],
    ['Blocked', formatCount(merge(BLOCK, sum))],
    ['Exceptions', formatCount(merge(EXCEPTION, sum))],
    ['Average', formatDuration(average)],
  ];
  if (RECORDED) {
    figures.push(['In flight, maximum', formatCount(merge(FLIGHT, highest))]);
  } else {
    figures.push([all.length > 1 ? 'Highest p99 of a second' : 'p99', formatDuration(merge(P99, highest))]);
    figures.push(['In flight, average', formatCalls(merge(FLIGHT, list => sum(list) / list.length))]);
  }
  if (isLive() && !underCursor) {
    const oldest = received.running[0], age = oldest && (received.serverNow - oldest.since) * 1000;
    figures.push(subject === TOTAL
      ? ['Oldest in flight', oldest ? formatDuration(age) : '< 1 s', oldest && isInTrouble(oldest.resource)]
      : ['Average age of these', formatDuration(received.age < 0 ? null : received.age), isInTrouble(subject)]);
  }
  const minutes = view.minutes === 1 ? 'a minute' : view.minutes + ' minutes';
  figures.push([
    view.zoom ? 'Busiest second of these' : 'Busiest of ' + minutes,
    busiest.row ? formatCount(value(busiest, PASS)) + ' at ' + formatTime(busiest.at) : '–',
  ]);
  return figures;
}

// setCursor moves the cursor of all charts to a second, and the figures with it. null removes the cursor.
function setCursor(at) {
  cursorAt = at;
  for (const c of Object.values(charts)) c.moveCursor(at);
  drawFigures(shownSeconds());
}

// isShortcut reports whether a key event may be a shortcut of the page. It is not while the user types into a field.
const isShortcut = e => !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|SELECT)$/.test(e.target.tagName);

// onCursorKey moves the cursor with the keys , and .
function onCursorKey(e) {
  const by = { ',': -1, '.': 1 }[e.key], seconds = shownSeconds();
  if (!by || !seconds.length || !isShortcut(e)) return;
  const first = seconds[0].at, last = seconds[seconds.length - 1].at;
  setCursor(Math.min(Math.max(cursorAt === null ? last : cursorAt + by, first), last));
}

// viewChanged updates the page, the address and the query after a change of view.
function viewChanged() {
  heldRows = null;
  drawHead();
  saveAddress();
  draw();
  reconnect(150);
}

// zoom shows the seconds from first to before end in the charts: at least five, and at most the kept history. Without
// arguments it zooms out.
function zoom(first, end) {
  const latestStart = length => lastShown() + 1 - length; // the range must not end after the last second
  const oldest = Math.min(lastShown(), ...subjectStore().seconds.keys());
  const length = Math.min(Math.max(Math.round(end - first), 5), KEPT);
  const start = Math.max(Math.min(Math.round(first), latestStart(length)), Math.min(oldest, latestStart(length)));
  view.zoom = first === undefined ? unzoomedRange() : [start, start + length];
  viewChanged();
}

// onZoomKey zooms with the keys +, - and 0, and moves the zoomed range with the arrow keys.
function onZoomKey(e) {
  if (!lastShown() || !isShortcut(e)) return;
  const [from, to] = view.zoom || chartRange(lastShown()), length = to - from;
  const change = { // of from and to
    '+': [length / 4, -length / 4], '-': [-length / 2, length / 2], '0': [],
    ArrowLeft: [-length / 4, -length / 4], ArrowRight: [length / 4, length / 4],
  }[e.key];
  if (!change || !view.zoom && e.key !== '+') return;
  e.preventDefault();
  const zoomsOut = e.key === '0' || e.key === '-' && length * 2 > (RECORDED ? KEPT : view.minutes * 60);
  if (zoomsOut) zoom(); else zoom(from + change[0], to + change[1]);
}

// choose opens a resource, or returns to the total, as a new step in the browser's history. It also moves the focus.
function choose(name) {
  if (name === subject) return;
  const before = subject;
  showSubject(name);
  saveAddress(true);
  if (name === TOTAL) { // back to the row of the resource, if it is on this page of the table
    const row = [...byId('rows').children].find(tr => tr.entry.name === before);
    (row ? row.querySelector('button') : byId('search')).focus();
    return;
  }
  byId('back').focus({ preventScroll: true });
  byId('subject').scrollIntoView({ block: 'nearest' });
}

// showSubject shows a resource, or the total.
function showSubject(name) {
  // While the details are loading, a minimum height prevents that the table moves up, and down again.
  const { style } = byId('above');
  style.minHeight = name === TOTAL ? '' : byId('above').getBoundingClientRect().height + 'px';
  Object.assign(received, { resource: new SecondStore(), resourceExists: true, details: null });
  subject = name;
  disconnect(); // the data of the resource was dropped, so it must be requested again, even if the query is the same
  byId('back').hidden = name === TOTAL;
  byId('details').hidden = true;
  draw();
  reconnect(0);
}

// drawDetails shows the callers of a resource, its limits and blocks, and the codes of its completions.
function drawDetails(d) {
  const counts = s => [
    s.name || '(none)', s.pass ? formatCount(s.pass) + ' passed' : '', s.block ? formatCount(s.block) + ' blocked' : '',
  ];
  const limits = d.limits.map(s => ['limit of ' + s.name, '', formatCount(s.pass || 0)]);
  byId('details').replaceChildren(
    subtotalTable('Origins, since the start', d.origins.map(counts)),
    subtotalTable('Called by', d.callers.map(counts)),
    subtotalTable('Limits, and refusals by reason', [...limits, ...d.blocks.map(counts)]),
    subtotalTable('Answers by code', d.codes.map(s => [s.name || '(none)', formatCount(s.complete) + ' ended'])),
    ...isLive() ? [runningTable(d.running)] : [],
  );
  byId('details').hidden = false;
  byId('above').style.minHeight = '';
}

// runningTable lists the groups of the oldest calls in flight. The server groups a limited number of calls.
const runningTable = list => subtotalTable(runningTitle(list), list.map(x => {
  const traces = x.traces || [];
  const parts = [
    subject === TOTAL && x.resource, x.origin && 'by ' + x.origin, x.entrance,
    traces.length && (traces.length > 1 ? 'traces ' : 'trace ') + traces.join(', '),
  ];
  const calls = x.count === 1 ? '1 call' : formatCount(x.count) + ' calls';
  return [parts.filter(Boolean).join(' · '), calls, formatDuration((received.serverNow - x.since) * 1000)];
}));

// runningTitle states the number of calls in the list, because many more may be in flight.
function runningTitle(list) {
  const calls = list.reduce((n, x) => n + x.count, 0);
  return 'Oldest in flight' + (calls > 1 ? ': ' + formatCount(calls) + ' calls' : '');
}

// subtotalTable returns a titled table. A row is a list of texts, the name first.
function subtotalTable(title, list) {
  const figure = element('figure'), t = element('table', undefined, { class: 'shares' });
  for (const cells of list) {
    const tr = element('tr');
    tr.append(...cells.map(text => element('td', visible(text))));
    t.append(tr);
  }
  figure.append(element('figcaption', title), list.length ? t : element('p', 'none'));
  return figure;
}

// saveAddress writes the view into the fragment of the address, so a link or a reload shows the same. A step is a new
// entry in the browser's history; otherwise the current entry is replaced.
function saveAddress(step) {
  const p = new URLSearchParams(); // without defaults, so the usual address has no fragment
  if (subject !== TOTAL) p.set('resource', subject);
  if (view.sort !== TROUBLE || !view.descending) p.set('sort', view.sort + (view.descending ? '' : '.up'));
  if (view.search) p.set('search', view.search);
  if (view.page) p.set('page', view.page + 1);
  if (view.minutes !== 3) p.set('range', view.minutes);
  if (!isUnzoomed()) p.set('zoom', view.zoom.join('-'));
  if (view.commonScale) p.set('scale', 'common');
  if (paused) p.set('paused', paused);
  const hash = p.size ? '#' + p : location.pathname + location.search;
  if (step) history.pushState(null, '', hash); else history.replaceState(null, '', hash);
}

// restoreAddress shows the view in the address. The address is untrusted, so each value is checked.
function restoreAddress() {
  const p = new URLSearchParams(location.hash.slice(1)), [sort, up] = (p.get('sort') || TROUBLE).split('.');
  const number = (name, otherwise) => /^\d{1,10}$/.test(p.get(name) || '') ? Number(p.get(name)) : otherwise;
  view.sort = columns.some(c => c.key === sort && c.key !== 'spark') ? sort : TROUBLE;
  view.descending = up !== 'up';
  view.search = (p.get('search') || '').slice(0, 200);
  view.page = Math.min(Math.max(number('page', 1) - 1, 0), 1e6);
  view.minutes = [1, 3, 10].includes(number('range', 3)) ? number('range', 3) : 3;
  const [, first, end] = /^(\d{1,10})-(\d{1,10})$/.exec(p.get('zoom') || '') || [];
  view.zoom = end - first >= 5 && end - first <= KEPT ? [Number(first), Number(end)] : unzoomedRange();
  paused = number('paused', 0);
  view.commonScale = p.get('scale') === 'common';
  byId('common').checked = view.commonScale;
  byId('search').value = view.search;
  byId('range').value = view.minutes;
  byId('pause').textContent = paused ? 'Go on' : 'Pause';
  drawHead();
  showSubject(p.get('resource') || TOTAL);
}

// createCharts creates the charts of the subject, then the charts of the process.
function createCharts() {
  const passLine = { label: 'pass', color: 'pass', fill: true };
  charts.calls = new Chart('calls', [
    passLine, { label: 'blocked', color: 'block' }, { label: 'exceptions', color: 'bad' },
  ], formatCount);
  charts.times = new Chart('times', [
    { label: 'average', color: 'pass' }, { label: 'p99', color: 'slow', optional: RECORDED },
  ], formatDuration);
  const fraction = { minTop: .01, incrs: undefined }; // values may be below 1
  charts.flight = new Chart('flight', [
    { label: RECORDED ? 'maximum' : 'average', color: 'flight', fill: true },
  ], formatCalls, fraction);
  const small = { height: 110 };
  charts.cpu = new Chart('cpu', [
    { label: 'used', color: 'pass', fill: true },
    { label: 'throttled', color: 'bad', optional: true },
    { label: 'waited for', color: 'block', optional: true },
  ], formatCalls, { ...small, ...fraction });
  charts.memory = new Chart('memory', [
    { label: 'heap', color: 'pass', fill: true }, { label: 'of which windowstat', color: 'flight' },
    { label: 'cgroup', color: 'slow', optional: true },
  ], formatBytes, { ...small, incrs: byteTicks });
  charts.delays = new Chart('delays', [
    { label: 'scheduler p99', color: 'slow' }, { label: 'longest pause', color: 'block' },
  ], us => us === 0 ? '0' : formatDuration(us), small);
  charts.goroutines = new Chart('goroutines', [
    { label: 'goroutines', color: 'flight', fill: true },
  ], formatCount, small);
}

// addListeners connects the controls of the page with their actions.
function addListeners() {
  byId('pause').addEventListener('click', () => {
    paused = paused ? 0 : received.total.newest;
    byId('pause').textContent = paused ? 'Go on' : 'Pause';
    showStatus(paused ? 'paused' : 'live'); // the next message replaces it
    viewChanged();
  });
  byId('back').addEventListener('click', () => choose(TOTAL));
  addEventListener('keydown', e => {
    if (e.key === 'Escape' && subject !== TOTAL && e.target !== byId('search')) choose(TOTAL);
  });
  addEventListener('keydown', onZoomKey);
  addEventListener('keydown', onCursorKey);
  byId('unzoom').addEventListener('click', () => { zoom(); byId('range').focus(); });
  byId('search').addEventListener('input', () => {
    Object.assign(view, { search: byId('search').value, page: 0 });
    viewChanged();
  });
  byId('common').addEventListener('change', () => {
    view.commonScale = byId('common').checked;
    saveAddress();
    drawTable();
  });
  byId('range').addEventListener('change', () => {
    Object.assign(view, { minutes: Number(byId('range').value), zoom: null });
    viewChanged();
  });
  byId('previous').addEventListener('click', () => turnPage(-1));
  byId('next').addEventListener('click', () => turnPage(1));
  byId('rows').addEventListener('pointerenter', () => { pointerOver = true; updateHold(); });
  byId('rows').addEventListener('pointerleave', () => { pointerOver = false; updateHold(); });
  byId('rows').addEventListener('focusin', updateHold);
  byId('rows').addEventListener('focusout', () => setTimeout(updateHold)); // when the next element has the focus
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawTable);
  addEventListener('popstate', restoreAddress); // back and forward in the browser, or another fragment
}

addEventListener('DOMContentLoaded', () => {
  createCharts();
  addListeners();
  restoreAddress();
  connect(status => { // after each message
    showStatus(paused ? 'paused' : status);
    if (view.page && inSync() && view.page * ROWS >= received.table.matches) { // the page no longer exists
      view.page = Math.max(0, Math.ceil(received.table.matches / ROWS) - 1);
      saveAddress();
    }
    draw();
    if (inSync()) updateHold();
    reconnect(0);
  });
});
