'use strict';

// A page of the table of resources, sorted by any column. While all resources fit on it, it is sorted and searched here, and
// otherwise by the server.
const ROWS = Number(document.documentElement.dataset.rows);
const trs = new Map(); // by number
let standing = null, pointed = false; // the rows that somebody is about to choose from, in their order
const alphabet = new Intl.Collator(); // many times as quick as localeCompare
const columns = [
  { key: 'name', title: 'Resource' }, { key: PASS, title: 'Pass' }, { key: BLOCK, title: 'Blocked', mark: 'many' },
  { key: EXCEPTION, title: 'Exceptions', mark: 'bad' }, { key: P99, title: 'p99', format: duration }, { key: AVERAGE, title: 'Average', format: duration },
  { key: MOST, title: 'Most in flight' }, { key: 'peak', title: 'Busiest second', of: x => Math.max(0, ...x.past) }, { key: 'spark', title: 'Last minute' },
];
const ofColumn = (x, c) => c.key === 'name' ? x.name : c.of ? c.of(x) : value(x, c.key);

const few = () => known.table.resources <= ROWS;

// queryNow is what the server is asked for.
function queryNow() {
  const q = subject === ALL ? {} : { resource: subject };
  if (known.table.at && few()) return q;
  Object.assign(q, { sort: view.sort, up: String(view.down === (view.sort === 'name')), search: view.search, from: String(view.page * ROWS) });
  if (standing && known.table.matches > ROWS) q.held = standing.map(x => x.number).join('.');
  return q;
}

function head() {
  byId('head').replaceChildren(...columns.map(c => {
    const sorted = view.sort === c.key;
    const th = element('th', undefined, { scope: 'col', class: c.key, 'aria-sort': sorted ? (view.down ? 'descending' : 'ascending') : 'none' });
    if (c.key === 'spark') { th.textContent = c.title; return th; }
    const b = element('button', c.title + (sorted ? (view.down ? ' ↓' : ' ↑') : ''), { type: 'button' });
    b.addEventListener('click', () => {
      if (sorted) view.down = !view.down; else Object.assign(view, { sort: c.key, down: c.key !== 'name' });
      view.page = 0;
      head();
      changed();
      byId('head').children[columns.indexOf(c)].firstChild.focus();
    });
    th.append(b);
    return th;
  }));
}

// hold keeps the rows where they are while one is about to be chosen: the pointer is over one, or the keyboard has come to
// one. A click that leaves the focus behind holds nothing.
function hold() {
  const held = pointed || byId('rows').querySelector(':focus-visible') !== null;
  if (held === (standing !== null)) return;
  standing = held ? [...byId('rows').children].map(tr => tr.entry) : null;
  if (!held) table();
  refollow(200);
}

// listed is the rows in their order. Those that are held stay where they are, and new ones come behind them.
function listed() {
  let list = shownTable().rows;
  if (list.length === shownTable().resources) {
    const c = columns.find(c => c.key === view.sort), sign = view.down ? -1 : 1, wanted = view.search.toLowerCase();
    const key = new Map(list.map(x => [x, ofColumn(x, c)]));
    list = list.filter(x => x.name.toLowerCase().includes(wanted)).sort((a, b) => c.key !== 'name' && sign * (key.get(a) - key.get(b)) || (c.key === 'name' ? sign : 1) * alphabet.compare(a.name, b.name));
  }
  if (!standing) return list;
  const now = new Map(list.map(x => [x.number, x]));
  const first = standing.map(x => now.get(x.number) || (shownTable().at - x.at > 1 ? { ...x, row: null } : x));
  first.forEach(x => now.delete(x.number));
  standing = [...first, ...now.values()].slice(0, Math.max(ROWS, first.length));
  return standing;
}

function table() {
  const list = listed(), { at, resources, matches } = shownTable(), here = list.length === resources || view.page * ROWS < matches;
  byId('none').hidden = list.length > 0;
  byId('none').textContent = !at ? 'The first second is not over yet.' : view.search ? 'No resource has such a name.' : resources && !here ? 'There are no more resources.' : 'There are no resources yet.';
  const body = byId('rows'), focused = document.activeElement;
  list.forEach((item, i) => {
    const tr = trs.get(item.number) || newRow(item);
    fill(tr, item);
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] || null);
  });
  while (body.children.length > list.length) body.lastChild.remove();
  for (const [number, tr] of trs) if (!tr.isConnected) trs.delete(number);
  if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true }); // its row was moved
  pages(list.length);
}

// pages tells which rows of how many these are.
function pages(n) {
  const { resources, matches, at } = shownTable(), all = n < resources && resources <= ROWS ? n : matches, from = resources <= ROWS ? 0 : view.page * ROWS;
  const text = (n ? count(from + 1) + '–' + count(from + n) + ' of ' : '') + count(all) + (view.search ? ' found' : '') + (paused ? ', at ' + clock(at) : '');
  if (byId('place').textContent !== text) byId('place').textContent = text;
  byId('previous').disabled = from === 0;
  byId('next').disabled = from + n >= all;
  byId('previous').hidden = byId('next').hidden = all <= ROWS && from === 0;
}

function turn(by) {
  view.page = Math.max(0, view.page + by);
  changed();
}

function fill(tr, item) {
  tr.entry = item;
  columns.forEach((c, k) => {
    const td = tr.children[k];
    if (c.key === 'name') return;
    if (c.key === 'spark') return spark(td.firstChild, item.past);
    const n = ofColumn(item, c), text = (c.format || count)(n);
    if (td.textContent !== text) td.textContent = text;
    td.classList.toggle(c.mark || 'none', !!c.mark && n > 0);
  });
}

function newRow(item) {
  const tr = element('tr');
  for (const c of columns) {
    const td = element('td', undefined, { class: c.key });
    if (c.key === 'name') {
      const b = element('button', item.name, { type: 'button', title: item.name });
      b.addEventListener('click', () => choose(item.name));
      td.append(b);
    }
    if (c.key === 'spark') td.append(element('canvas', undefined, { role: 'img', 'aria-label': 'passes in each second of the last minute' }));
    tr.append(td);
  }
  trs.set(item.number, tr);
  return tr;
}
