'use strict';

const byId = id => document.getElementById(id);
const charts = {};
// What somebody chose, which is in the address: the order of the table, the search, the page of it, and how many minutes the
// charts show, or which seconds, from the first to before the last. subject is what is shown above.
const view = { sort: TROUBLE, down: true, search: '', page: 0, range: 3, zoom: null, common: false };
let subject = ALL, paused = 0, pointedAt = null; // the last second that a page shows that was paused, and the second under the cursor

const shownPast = () => subject === ALL ? known.total : known.resource;
// whole is what a recorded page shows when nobody has zoomed: all of it. Others go on with the last seconds.
const whole = () => RECORDED ? recording.span : null;
const unzoomed = () => !view.zoom || RECORDED && view.zoom[1] - view.zoom[0] === KEEP;
const lastShown = () => paused || known.total.newest;
const shown = () => view.zoom ? shownPast().list(view.zoom[1] - view.zoom[0], view.zoom[1] - 1) : shownPast().list(view.range * 60, lastShown());

function element(name, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  return e;
}

// title names what is shown. The total is the inbound calls of the service, as everywhere. A worker has none: what it calls of itself is
// background.
const title = name => name !== ALL ? name : known.inbound ? 'All inbound calls' : 'Background: all outermost calls; none was inbound';

function draw() {
  byId('subject').textContent = title(subject);
  byId('gone').hidden = subject === ALL || known.there;
  byId('unzoom').hidden = unzoomed();
  table();
  const seconds = shown(), column = c => line(seconds, c), times = seconds.map(s => s.at);
  const limits = subject !== ALL && known.details ? known.details.limits : [];
  for (const [chart, name] of [['calls', 'qps'], ['flight', 'concurrency']]) {
    const limit = limits.find(l => l.name === name);
    charts[chart].limit = limit ? limit.pass || 0 : null;
    byId(name).textContent = limit ? '; the limit is ' + count(limit.pass || 0) : '';
  }
  charts.calls.show([times, column(PASS), column(BLOCK), column(EXCEPTION)]);
  charts.times.show([times, column(AVERAGE), column(P99)]);
  charts.flight.show([times, column(FLIGHT)]);
  machine();
  const timed = seconds.find(s => value(s, P99) !== null), untimed = seconds.some(s => value(s, AVERAGE) !== null && (!timed || s.at < timed.at));
  byId('timed').textContent = !untimed || RECORDED ? '' : timed ? '; p99 from ' + clock(timed.at) + ' on' : '; the p99 is not known any more';
  if (pointedAt === null) figures(seconds); else queueMicrotask(() => pointTo(pointedAt)); // where that second is when the charts have moved
  tell();
  byId('running').hidden = subject !== ALL || !present() || !known.running.length;
  byId('running').replaceChildren(running(known.running)); // below the rows, which hold still
  if (subject !== ALL && known.details && !RECORDED) details(known.details);
}

// machine is what the process had of the machine in the seconds that the charts show.
function machine() {
  const [first, end] = span(lastShown()), seconds = known.machine.list(end - first, end - 1), column = c => line(seconds, c), times = seconds.map(s => s.at);
  charts.cpu.show([times, column(CPU), column(THROTTLED), column(WAITED)]);
  charts.memory.show([times, column(HEAP), column(MEMORY)]);
  charts.delays.show([times, column(LATENCY), column(PAUSE)]);
  charts.goroutines.show([times, column(GOROUTINES)]);
  const events = column(EVENTS).reduce((a, b) => a + b, 0);
  byId('events').textContent = events ? '; ' + count(events) + ' times at its limit' : '';
  byId('measured').textContent = seconds.length && seconds[0].at > first ? ', measured while somebody looks: from ' + clock(seconds[0].at) + ' on' : '';
}

// figures are the numbers of the second under the cursor, of the range that is zoomed to, or of the last second.
function figures(seconds) {
  const under = pointedAt !== null && seconds.find(s => s.at === pointedAt), all = under ? [under] : view.zoom ? seconds : shownPast().list(1, lastShown());
  const values = c => all.map(s => value(s, c)).filter(n => n !== null), of = (c, merge) => { const list = values(c); return list.length ? merge(list) : null; };
  const sum = list => list.reduce((a, b) => a + b, 0), highest = list => Math.max(...list), many = all.length > 1;
  const spent = sum(all.map(s => value(s, AVERAGE) * value(s, COMPLETE))), ended = of(COMPLETE, sum);
  const busiest = seconds.reduce((a, s) => value(s, PASS) > value(a, PASS) ? s : a, seconds[0] || { row: null });
  byId('when').textContent = !all.length ? '' : under ? 'Under the cursor: ' + clock(under.at) : view.zoom ? (unzoomed() ? 'All ' : 'Zoomed to ') + from(view.zoom) : 'The second ' + clock(all[0].at);
  const facts = [
    ['Pass', count(of(PASS, sum))], ['Blocked', count(of(BLOCK, sum))], ['Exceptions', count(of(EXCEPTION, sum))],
    ['Average', duration(ended && of(AVERAGE, sum) !== null ? spent / ended : null)], ...RECORDED ? [] : [[many ? 'Highest p99 of a second' : 'p99', duration(of(P99, highest))]],
    RECORDED ? ['In flight, most', count(of(FLIGHT, highest))] : ['In flight, average', calls(of(FLIGHT, list => sum(list) / list.length))],
    ...!present() || under ? [] : subject === ALL ? [['Oldest in flight', known.running.length ? duration((known.now - known.running[0].since) * 1000) : '–']] : [['Average age of these', duration(known.age < 0 ? null : known.age)]],
    [view.zoom ? 'Busiest second of these' : 'Busiest of ' + (view.range === 1 ? 'a minute' : view.range + ' minutes'), busiest.row ? count(value(busiest, PASS)) + ' at ' + clock(busiest.at) : '–'],
  ];
  byId('now').replaceChildren(...facts.map(([k, v]) => {
    const box = element('div');
    box.append(element('dt', k), element('dd', v));
    return box;
  }));
}

// pointTo has all charts and the figures show one second, null for none.
function pointTo(at) {
  pointedAt = at;
  for (const c of Object.values(charts)) c.point(at);
  figures(shown());
}

// pointKey moves the cursor without a mouse.
function pointKey(e) {
  const by = { ',': -1, '.': 1 }[e.key], seconds = shown();
  if (!by || !seconds.length || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT)$/.test(e.target.tagName)) return;
  const [first, last] = [seconds[0].at, seconds[seconds.length - 1].at];
  pointTo(Math.min(Math.max(pointedAt === null ? last : pointedAt + by, first), last));
}

// changed shows what somebody asked for.
function changed() {
  standing = null;
  head();
  save();
  draw();
  refollow(150);
}

// zoom has the charts show some seconds and no others, or go on with the last ones.
function zoom(first, last) {
  const all = shownPast().seconds, oldest = Math.min(lastShown(), ...all.keys());
  const length = Math.min(Math.max(Math.round(last - first), 5), KEEP);
  const from = Math.max(Math.min(Math.round(first), lastShown() + 1 - length), Math.min(oldest, lastShown() + 1 - length));
  view.zoom = first === undefined ? whole() : [from, from + length];
  changed();
}

// zoomKey is zooming without a mouse.
function zoomKey(e) {
  if (!lastShown() || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT)$/.test(e.target.tagName)) return;
  const [from, to] = view.zoom || span(lastShown()), length = to - from;
  const by = { '+': [length / 4, -length / 4], '-': [-length / 2, length / 2], '0': [], ArrowLeft: [-length / 4, -length / 4], ArrowRight: [length / 4, length / 4] }[e.key];
  if (!by || !view.zoom && e.key !== '+') return;
  e.preventDefault();
  if (e.key === '0' || e.key === '-' && length * 2 > (RECORDED ? KEEP : view.range * 60)) zoom(); else zoom(from + by[0], to + by[1]);
}

// choose shows one resource, or the total.
function choose(name) {
  if (name === subject) return;
  const before = subject;
  open(name);
  save(true);
  if (name === ALL) {
    const row = [...byId('rows').children].find(tr => tr.entry.name === before);
    (row ? row.querySelector('button') : byId('search')).focus();
    return;
  }
  byId('back').focus({ preventScroll: true });
  byId('subject').scrollIntoView({ block: 'nearest' });
}

// open has a resource be shown, or the total.
function open(name) {
  const room = byId('above').style;
  room.minHeight = name === ALL ? '' : byId('above').getBoundingClientRect().height + 'px'; // or the rows below jump up, and down again
  Object.assign(known, { resource: new Past(), there: true, details: null });
  subject = name;
  unfollow(); // what is known of it has to come again, also if it was shown just now
  byId('back').hidden = name === ALL;
  byId('details').hidden = true;
  draw();
  refollow(0);
}

// details are who calls a resource, what refuses, and how calls end.
function details(d) {
  const passed = s => [s.name || '(none)', s.pass ? count(s.pass) + ' passed' : '', s.block ? count(s.block) + ' blocked' : ''];
  byId('details').replaceChildren(
    shares('Origins, since the start', d.origins.map(passed)),
    shares('Called by', d.callers.map(passed)),
    shares('Limits, and refusals by reason', [...d.limits.map(s => ['limit of ' + s.name, '', count(s.pass || 0)]), ...d.blocks.map(passed)]),
    shares('Answers by code', d.codes.map(s => [s.name || '(none)', count(s.complete) + ' ended'])),
    ...present() ? [running(d.running)] : [],
  );
  byId('details').hidden = false;
  byId('above').style.minHeight = '';
}

// present is whether the page goes on with the last second: what is known of now only is not shown beside another moment.
const present = () => !RECORDED && !paused && !view.zoom;

// running lists calls in flight that have been so for long.
const running = list => shares('In flight for longest', list.map(x =>
  [[subject === ALL && x.resource, x.origin && 'by ' + x.origin, x.entrance, x.trace && 'trace ' + x.trace].filter(Boolean).join(' · '), duration((known.now - x.since) * 1000)]));

// shares is who has how much of a resource: a name and what is said of it in each row.
function shares(title, list) {
  const figure = element('figure'), t = element('table', undefined, { class: 'shares' });
  for (const cells of list) {
    const tr = element('tr');
    tr.append(...cells.map(text => element('td', text)));
    t.append(tr);
  }
  figure.append(element('figcaption', title), list.length ? t : element('p', 'none'));
  return figure;
}

// save puts what is shown into the address, so that it can be sent to others, and survives a reload.
function save(step) {
  const p = new URLSearchParams();
  if (subject !== ALL) p.set('resource', subject);
  if (view.sort !== TROUBLE || !view.down) p.set('sort', view.sort + (view.down ? '' : '.up'));
  if (view.search) p.set('search', view.search);
  if (view.page) p.set('page', view.page + 1);
  if (view.range !== 3) p.set('range', view.range);
  if (!unzoomed()) p.set('zoom', view.zoom.join('-'));
  if (view.common) p.set('scale', 'common');
  if (paused) p.set('paused', paused);
  const hash = p.size ? '#' + p : location.pathname + location.search;
  if (step) history.pushState(null, '', hash); else history.replaceState(null, '', hash);
}

// restore shows what the address says. Anybody may have written it.
function restore() {
  const p = new URLSearchParams(location.hash.slice(1)), [sort, up] = (p.get('sort') || TROUBLE).split('.');
  const number = (name, otherwise) => /^\d{1,10}$/.test(p.get(name) || '') ? Number(p.get(name)) : otherwise;
  view.sort = columns.some(c => c.key === sort && c.key !== 'spark') ? sort : TROUBLE;
  view.down = up !== 'up';
  view.search = (p.get('search') || '').slice(0, 200);
  view.page = Math.min(Math.max(number('page', 1) - 1, 0), 1e6);
  view.range = [1, 3, 10].includes(number('range', 3)) ? number('range', 3) : 3;
  const [, first, last] = /^(\d{1,10})-(\d{1,10})$/.exec(p.get('zoom') || '') || [];
  view.zoom = last - first >= 5 && last - first <= KEEP ? [Number(first), Number(last)] : whole();
  paused = number('paused', 0);
  view.common = p.get('scale') === 'common';
  byId('common').checked = view.common;
  byId('search').value = view.search;
  byId('range').value = view.range;
  byId('pause').textContent = paused ? 'Go on' : 'Pause';
  head();
  open(p.get('resource') || ALL);
}

addEventListener('DOMContentLoaded', () => {
  charts.calls = new Chart('calls', [{ label: 'pass', colour: 'pass', fill: true }, { label: 'blocked', colour: 'block' }, { label: 'exceptions', colour: 'bad' }], count);
  charts.times = new Chart('times', [{ label: 'average', colour: 'pass' }, { label: 'p99', colour: 'slow', may: RECORDED }], duration);
  charts.flight = new Chart('flight', [{ label: RECORDED ? 'most' : 'average', colour: 'flight', fill: true }], calls, { least: .01, incrs: undefined });
  const small = { height: 110 };
  charts.cpu = new Chart('cpu', [{ label: 'used', colour: 'pass', fill: true }, { label: 'throttled', colour: 'bad', may: true }, { label: 'waited for', colour: 'block', may: true }], calls, { ...small, least: .01, incrs: undefined });
  charts.memory = new Chart('memory', [{ label: 'heap', colour: 'pass', fill: true }, { label: 'cgroup', colour: 'slow', may: true }], bytes, { ...small, incrs: powers });
  charts.delays = new Chart('delays', [{ label: 'scheduler p99', colour: 'slow' }, { label: 'longest pause', colour: 'block' }], duration, small);
  charts.goroutines = new Chart('goroutines', [{ label: 'goroutines', colour: 'flight', fill: true }], count, small);
  byId('pause').addEventListener('click', () => {
    paused = paused ? 0 : known.total.newest;
    byId('pause').textContent = paused ? 'Go on' : 'Pause';
    say(paused ? 'paused' : 'live');
    changed();
  });
  byId('back').addEventListener('click', () => choose(ALL));
  addEventListener('keydown', e => { if (e.key === 'Escape' && subject !== ALL && e.target !== byId('search')) choose(ALL); });
  addEventListener('keydown', zoomKey);
  addEventListener('keydown', pointKey);
  byId('unzoom').addEventListener('click', () => { zoom(); byId('range').focus(); });
  byId('search').addEventListener('input', () => {
    Object.assign(view, { search: byId('search').value, page: 0 });
    changed();
  });
  byId('common').addEventListener('change', () => {
    view.common = byId('common').checked;
    save();
    table();
  });
  byId('range').addEventListener('change', () => {
    Object.assign(view, { range: Number(byId('range').value), zoom: null });
    changed();
  });
  byId('previous').addEventListener('click', () => turn(-1));
  byId('next').addEventListener('click', () => turn(1));
  byId('rows').addEventListener('pointerenter', () => { pointed = true; hold(); });
  byId('rows').addEventListener('pointerleave', () => { pointed = false; hold(); });
  byId('rows').addEventListener('focusin', hold);
  byId('rows').addEventListener('focusout', () => setTimeout(hold)); // when the focus has come to where it goes
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', table);
  addEventListener('popstate', restore);
  restore();
  follow(text => {
    say(paused ? 'paused' : text);
    if (view.page && settled() && view.page * ROWS >= known.table.matches) {
      view.page = Math.max(0, Math.ceil(known.table.matches / ROWS) - 1);
      save();
    }
    draw();
    if (settled()) hold();
    refollow(0);
  });
});
