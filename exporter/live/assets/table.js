'use strict';

// The table of resources, sorted by any column.
const SPARK = 60, MOST = 500;
const order = { by: 'pass', down: true };
const rowsByName = new Map();
let standing = [], pointed = false; // the names of the rows in their order, and whether the pointer is over one
const alphabet = new Intl.Collator(); // many times as quick as localeCompare
const columns = [
  { key: 'name', title: 'Resource' }, { key: 'pass', title: 'Pass', at: PASS }, { key: 'block', title: 'Blocked', at: BLOCK, mark: 'block' },
  { key: 'exception', title: 'Exceptions', at: EXCEPTION, mark: 'bad' }, { key: 'average', title: 'Average', at: AVERAGE, format: duration },
  { key: 'p99', title: 'p99', at: P99, format: duration }, { key: 'flight', title: 'In flight', at: FLIGHT },
  { key: 'peak', title: 'Busiest second' }, { key: 'spark', title: 'Last minute' },
];

function head() {
  byId('head').replaceChildren(...columns.map(c => {
    const sorted = order.by === c.key;
    const th = element('th', undefined, { scope: 'col', 'aria-sort': sorted ? (order.down ? 'descending' : 'ascending') : 'none' });
    if (c.key === 'spark') { th.textContent = c.title; return th; }
    const b = element('button', c.title + (sorted ? (order.down ? ' ↓' : ' ↑') : ''), { type: 'button' });
    b.addEventListener('click', () => {
      if (sorted) order.down = !order.down; else Object.assign(order, { by: c.key, down: c.key !== 'name' });
      head();
      table(true);
      byId('head').children[columns.indexOf(c)].firstChild.focus();
    });
    th.append(b);
    return th;
  }));
}

// items are the resources that were called in the seconds that are shown, with what is in their columns.
function items(seconds) {
  const peaks = new Map(); // in one pass: names that come and go may be very many
  for (const { rows, places } of seconds) {
    for (const [name, row] of rows || []) peaks.set(name, Math.max(peaks.get(name) || 0, row[places[PASS]]));
  }
  if (held()) for (const name of standing) if (!peaks.has(name)) peaks.set(name, 0); // or those below would move up
  const last = seconds[seconds.length - 1];
  return [...peaks].map(([name, peak]) => {
    const item = { name, peak };
    for (const c of columns) if (c.at) item[c.key] = value(last, name, c.at);
    return item;
  });
}

// held reports whether a row is about to be chosen: the pointer is over one, or the keyboard has come to one. A click that
// leaves the focus behind holds nothing.
function held() {
  return pointed || byId('rows').querySelector(':focus-visible') !== null;
}

// sort puts items in order. Rows that are held stay where they are, and new ones come behind them.
function sort(list, anew) {
  const { by } = order, sign = order.down ? -1 : 1;
  list.sort((a, b) => by !== 'name' && sign * (a[by] - b[by]) || (by === 'name' ? sign : 1) * alphabet.compare(a.name, b.name));
  if (anew || !held()) return;
  const places = new Map(standing.map((name, i) => [name, i])), place = x => places.has(x.name) ? places.get(x.name) : places.size;
  list.sort((a, b) => place(a) - place(b));
}

// table shows the rows; anew, if somebody asked for another order or for other rows.
function table(anew) {
  const seconds = shown(), all = items(seconds), wanted = byId('search').value.toLowerCase();
  let list = all.filter(x => x.name.toLowerCase().includes(wanted));
  sort(list, anew);
  list = list.slice(0, MOST);
  standing = list.map(x => x.name);
  byId('none').hidden = list.length > 0;
  byId('none').textContent = all.length ? 'No resource has such a name.' : 'Nothing was called in the last minutes.';
  const names = new Set(all.map(x => x.name));
  for (const name of rowsByName.keys()) if (!names.has(name)) rowsByName.delete(name);
  const body = byId('rows'), focused = document.activeElement;
  list.forEach((item, i) => {
    const tr = rowsByName.get(item.name) || newRow(item.name);
    fill(tr, item, seconds);
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] || null);
  });
  while (body.children.length > list.length) body.lastChild.remove();
  if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true }); // its row was moved
}

function fill(tr, item, seconds) {
  columns.forEach((c, k) => {
    const td = tr.children[k];
    if (c.at) {
      const text = (c.format || count)(item[c.key]);
      if (td.textContent !== text) td.textContent = text;
      td.className = c.mark && item[c.key] > 0 ? c.mark : '';
    } else if (c.key === 'peak') td.textContent = count(item.peak);
    else if (c.key === 'spark') spark(td.firstChild, line(seconds.slice(-SPARK), item.name, PASS));
  });
}

function newRow(name) {
  const tr = element('tr');
  for (const c of columns) {
    const td = element('td');
    if (c.key === 'name') {
      const b = element('button', name, { type: 'button' });
      b.addEventListener('click', () => choose(name));
      td.append(b);
    }
    if (c.key === 'spark') td.append(element('canvas', undefined, { role: 'img', 'aria-label': 'passes in each second of the last minute' }));
    tr.append(td);
  }
  rowsByName.set(name, tr);
  return tr;
}
