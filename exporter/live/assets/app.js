'use strict';

// What is known: the names of resources by number, and the rows of the last seconds. Names come from strangers; they are
// only ever set as text.
const KEEP = 180, SPARK = 60;
const state = { names: [], seconds: [], after: 0, epoch: 0, subject: null, paused: false, sort: 'pass', down: true };
const byId = id => document.getElementById(id);
const PASS = 1, BLOCK = 2, EXCEPTION = 3, COMPLETE = 4, AVERAGE = 5, P99 = 6, FLIGHT = 7;

function element(name, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  return e;
}

// take adds what the server sent.
function take(message) {
  if (message.fresh) {
    state.names = [];
    state.seconds = [];
    rowsByNumber.forEach(tr => tr.remove());
    rowsByNumber.clear();
  }
  state.epoch = message.epoch;
  message.names.forEach((name, i) => { state.names[message.first + i] = name; });
  for (const [at, rows] of message.seconds) {
    if (at <= state.after && state.seconds.length) continue;
    state.seconds.push({ at, rows: new Map(rows.map(r => [r[0], r])) });
    state.after = at;
  }
  state.seconds.splice(0, Math.max(0, state.seconds.length - KEEP));
  if (!state.paused) draw();
}

// line is one column of one resource over the last seconds. An idle second is 0, and has no response time.
function line(number, column) {
  return state.seconds.map(s => {
    const row = s.rows.get(number);
    if (column === AVERAGE || column === P99) return row && row[COMPLETE] > 0 && row[column] >= 0 ? row[column] : null;
    return row ? row[column] : 0;
  });
}

const charts = {}, rowsByNumber = new Map();

function draw() {
  if (!state.seconds.length) return;
  const number = state.subject === null ? 0 : state.names.indexOf(state.subject, 1);
  const times = state.seconds.map(s => s.at);
  const column = c => line(number, c);
  charts.calls.show([times, column(PASS), column(BLOCK), column(EXCEPTION)]);
  charts.times.show([times, column(AVERAGE), column(P99)]);
  charts.flight.show([times, column(FLIGHT)]);
  const last = c => { const l = column(c); return l[l.length - 1]; };
  const facts = [
    ['Pass', count(last(PASS))], ['Blocked', count(last(BLOCK))], ['Exceptions', count(last(EXCEPTION))],
    ['Average', duration(last(AVERAGE))], ['p99', duration(last(P99))], ['Most in flight', count(last(FLIGHT))],
    ['Busiest second', count(Math.max(0, ...column(PASS)))],
  ];
  byId('now').replaceChildren(...facts.map(([k, v]) => {
    const box = element('div');
    box.append(element('dt', k), element('dd', v));
    return box;
  }));
  table();
}

const columns = [
  { key: 'name', title: 'Resource' }, { key: 'pass', title: 'Pass', at: PASS }, { key: 'block', title: 'Blocked', at: BLOCK, mark: 'block' },
  { key: 'exception', title: 'Exceptions', at: EXCEPTION, mark: 'bad' }, { key: 'average', title: 'Average', at: AVERAGE, format: duration },
  { key: 'p99', title: 'p99', at: P99, format: duration }, { key: 'flight', title: 'In flight', at: FLIGHT },
  { key: 'peak', title: 'Busiest second' }, { key: 'spark', title: 'Last minute' },
];

function head() {
  byId('head').replaceChildren(...columns.map(c => {
    const th = element('th', undefined, { scope: 'col', 'aria-sort': state.sort === c.key ? (state.down ? 'descending' : 'ascending') : 'none' });
    if (c.key === 'spark') { th.textContent = c.title; return th; }
    const b = element('button', c.title + (state.sort === c.key ? (state.down ? ' ↓' : ' ↑') : ''), { type: 'button' });
    b.addEventListener('click', () => {
      if (state.sort === c.key) state.down = !state.down; else { state.sort = c.key; state.down = c.key !== 'name'; }
      head();
      table();
      byId('head').children[columns.indexOf(c)].firstChild.focus();
    });
    th.append(b);
    return th;
  }));
}

function table() {
  if (!state.seconds.length) return;
  const seen = new Set();
  for (const s of state.seconds) for (const n of s.rows.keys()) if (n > 0) seen.add(n);
  const wanted = byId('search').value.toLowerCase();
  let list = [...seen].filter(n => (state.names[n] || '').toLowerCase().includes(wanted)).map(n => {
    const item = { n, name: state.names[n] || '', peak: Math.max(0, ...line(n, PASS)) };
    const row = state.seconds[state.seconds.length - 1].rows.get(n);
    for (const c of columns) if (c.at) item[c.key] = row ? row[c.at] : 0;
    return item;
  });
  const by = state.sort, sign = state.down ? -1 : 1;
  list.sort((a, b) => by === 'name' ? sign * a.name.localeCompare(b.name) : sign * (a[by] - b[by]) || a.name.localeCompare(b.name));
  list = list.slice(0, 500);
  byId('none').hidden = seen.size > 0;
  for (const [n, tr] of rowsByNumber) if (!seen.has(n)) { tr.remove(); rowsByNumber.delete(n); }
  const body = byId('rows');
  list.forEach((item, i) => {
    const tr = rowsByNumber.get(item.n) || newRow(item);
    columns.forEach((c, k) => {
      const td = tr.children[k];
      if (c.at) {
        const text = (c.format || count)(c.format && !(item[c.key] > 0) ? null : item[c.key]);
        if (td.textContent !== text) td.textContent = text;
        td.className = c.mark && item[c.key] > 0 ? c.mark : '';
      } else if (c.key === 'peak') td.textContent = count(item.peak);
      else if (c.key === 'spark') spark(td.firstChild, line(item.n, PASS).slice(-SPARK));
    });
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] || null);
  });
  while (body.children.length > list.length) body.lastChild.remove();
}

function newRow(item) {
  const tr = element('tr');
  for (const c of columns) {
    const td = element('td');
    if (c.key === 'name') {
      const b = element('button', item.name, { type: 'button' });
      b.addEventListener('click', () => choose(item.name));
      td.append(b);
    }
    if (c.key === 'spark') td.append(element('canvas', undefined, { role: 'img', 'aria-label': 'passes in each second of the last minute' }));
    tr.append(td);
  }
  rowsByNumber.set(item.n, tr);
  return tr;
}

// choose shows one resource, or all calls.
async function choose(name) {
  state.subject = name;
  byId('subject').textContent = name === null ? 'All calls' : name;
  byId('back').hidden = name === null;
  byId('details').hidden = true;
  draw();
  if (name === null) return;
  byId('subject').scrollIntoView({ block: 'nearest' });
  const answer = await fetch('resource?name=' + encodeURIComponent(name)).catch(() => null);
  if (!answer || !answer.ok || state.subject !== name) return;
  const d = await answer.json();
  const list = (title, shares) => {
    const figure = element('figure');
    figure.append(element('figcaption', title));
    const t = element('table', undefined, { class: 'table' });
    for (const s of shares) {
      const tr = element('tr');
      tr.append(element('td', s.name || '(none)'), element('td', count(s.pass) + ' passed'), element('td', count(s.block) + ' blocked'));
      t.append(tr);
    }
    figure.append(shares.length ? t : element('p', 'none'));
    return figure;
  };
  byId('details').replaceChildren(list('Origins, since the start', d.origins), list('Called by', d.callers), list('Blocked by reason', d.blocks));
  byId('details').hidden = false;
}

function say(text, bad) {
  byId('state').textContent = text;
  byId('state').classList.toggle('bad', !!bad);
}

// follow listens to the stream. Where it brings nothing for some seconds, because something on the way holds it back, or
// the server has enough viewers, it asks instead.
function follow() {
  let heard = Date.now(), source = null;
  const position = () => 'after=' + (state.epoch ? [state.after, state.epoch, state.names.length].join('-') : '');
  const listen = () => {
    source = new EventSource('stream?' + position());
    source.onmessage = e => { heard = Date.now(); take(JSON.parse(e.data)); say(state.paused ? 'paused' : 'live'); };
  };
  const ask = async () => {
    try {
      const answer = await fetch('seconds?' + position());
      if (!answer.ok) throw new Error(answer.statusText);
      take(await answer.json());
      say(state.paused ? 'paused' : 'live, asking each second');
    } catch {
      say('the server does not answer; trying again', true);
    }
  };
  listen();
  setInterval(() => {
    if (Date.now() - heard < 4000) return;
    if (source && Date.now() - heard > 15000) { source.close(); source = null; }
    if (!source && Date.now() - heard > 30000) { heard = Date.now(); listen(); }
    ask();
  }, 1000);
}

addEventListener('DOMContentLoaded', () => {
  charts.calls = new Chart('calls', [{ label: 'pass', colour: 'pass', fill: true }, { label: 'blocked', colour: 'block' }, { label: 'exceptions', colour: 'bad' }], count);
  charts.times = new Chart('times', [{ label: 'average', colour: 'pass' }, { label: 'p99', colour: 'slow' }], duration);
  charts.flight = new Chart('flight', [{ label: 'most in flight', colour: 'flight', fill: true }], count);
  byId('pause').addEventListener('click', () => {
    state.paused = !state.paused;
    byId('pause').setAttribute('aria-pressed', state.paused);
    byId('pause').textContent = state.paused ? 'Go on' : 'Pause';
    say(state.paused ? 'paused' : 'live');
    if (!state.paused) draw();
  });
  byId('back').addEventListener('click', () => choose(null));
  byId('search').addEventListener('input', table);
  head();
  follow();
});
