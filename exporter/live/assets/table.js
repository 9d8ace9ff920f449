'use strict';

// A page of the table of resources, which the server sorts and searches.
const ROWS = Number(document.documentElement.dataset.rows);
const trs = new Map(); // by number
let standing = null, pointed = false; // the rows that somebody is about to choose from, in their order
const TROUBLE = 'trouble', PEAK = 'peak'; // what the server sorts by beside the columns
const columns = [
  { key: 'name', title: 'Resource' }, { key: TROUBLE, title: 'Trouble in 10\u00a0s', ranged: 'Trouble' }, { key: PASS, title: 'Pass' },
  { key: BLOCK, title: 'Blocked', mark: x => value(x, BLOCK) / (value(x, PASS) + value(x, BLOCK)) },
  { key: EXCEPTION, title: 'Exceptions', mark: x => value(x, EXCEPTION) / value(x, COMPLETE) },
  { key: P99, title: 'p99', format: duration, mark: x => slower(x) && Math.min(1, (slower(x) - 1) / 9) },
  { key: AVERAGE, title: 'Average', format: duration }, { key: FLIGHT, title: RECORDED ? 'In flight, most' : 'In flight, average', format: calls },
  { key: PEAK, title: 'Busiest second of a minute', ranged: 'Busiest second', of: x => Math.max(0, ...x.past) },
  { key: 'spark', title: 'Last minute', ranged: 'Passes' },
].filter(c => !RECORDED || c.key !== P99);

// slower is how many times the p99 is what is usual; 0 if that is not worth a look, as the server sorts.
function slower(x) {
  const p99 = value(x, P99), usual = value(x, USUAL);
  return usual && p99 >= 2 * usual && p99 - usual >= 1000 ? p99 / usual : 0;
}

// trouble is what is wrong with a resource, in words.
function trouble(x) {
  const failed = value(x, FAILED), refused = value(x, REFUSED), times = slower(x);
  return [failed && count(failed) + ' failed', refused && count(refused) + ' refused', times && 'p99 × ' + Number(times.toPrecision(2))].filter(Boolean).join(', ');
}

// range is the seconds of the table: those that are zoomed to, the one at which the page is paused, or null for the present.
const range = () => view.zoom || paused && [paused, paused + 1] || null;
const ranged = () => view.zoom !== null;

// queryNow is what the server is asked for.
function queryNow() {
  const q = { sort: view.sort, up: String(view.down === (view.sort === 'name')), search: view.search, from: String(view.page * ROWS) };
  if (subject !== ALL) q.resource = subject;
  if (range()) q.range = range().join('-');
  if (!range() && view.range <= 3) q.past = '180'; // or all that is kept
  if (standing && known.table.matches > ROWS) q.held = standing.map(x => x.number).join('.');
  return q;
}

function head() {
  byId('head').replaceChildren(...columns.map(c => {
    const sorted = view.sort === c.key, title = ranged() && c.ranged || c.title;
    const th = element('th', undefined, { scope: 'col', class: c.key, 'aria-sort': sorted ? (view.down ? 'descending' : 'ascending') : 'none' });
    if (c.key === 'spark') { th.textContent = title; return th; }
    const b = element('button', title + (sorted ? (view.down ? '\u00a0↓' : '\u00a0↑') : ''), { type: 'button' });
    if (c.key === TROUBLE) b.title = 'Exceptions, then refusals, of ten seconds; then a p99 that is twice what is usual, which is the median of the slowest call of a second in the last ten minutes';
    b.addEventListener('click', () => {
      if (sorted) view.down = !view.down; else Object.assign(view, { sort: c.key, down: c.key !== 'name' });
      view.page = 0;
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
  const list = known.table.rows;
  if (!standing) return list;
  const now = new Map(list.map(x => [x.number, x]));
  const first = standing.map(x => now.get(x.number) || { ...x, row: null }); // it is no more
  first.forEach(x => now.delete(x.number));
  standing = [...first, ...now.values()].slice(0, Math.max(ROWS, first.length));
  return standing;
}

function table() {
  const list = listed(), { end, resources } = known.table;
  byId('none').hidden = list.length > 0;
  byId('none').textContent = !end ? 'The first second is not over yet.' : range() && !resources ? 'Nothing is kept of these seconds any more.' : view.search ? 'No resource has such a name.' : resources ? 'There are no more resources.' : 'There are no resources yet.';
  byId('of').textContent = ranged() ? ': ' + from(view.zoom) : paused ? ', in the second ' + clock(paused) : '';
  const body = byId('rows'), focused = document.activeElement;
  const top = view.common ? Math.max(1, ...list.flatMap(x => x.past)) : 0;
  list.forEach((item, i) => {
    const tr = trs.get(item.number) || newRow(item);
    fill(tr, item, top);
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] || null);
  });
  while (body.children.length > list.length) body.lastChild.remove();
  for (const [number, tr] of trs) if (!tr.isConnected) trs.delete(number);
  if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true }); // its row was moved
  pages(list.length);
}

// pages tells which rows of how many these are.
function pages(n) {
  const { matches } = known.table, first = view.page * ROWS;
  const text = (n ? count(first + 1) + '–' + count(first + n) + ' of ' : '') + count(Math.max(matches, n)) + (view.search ? ' found' : '');
  if (byId('place').textContent !== text) byId('place').textContent = text;
  byId('previous').disabled = first === 0;
  byId('next').disabled = first + n >= matches;
  byId('previous').hidden = byId('next').hidden = matches <= ROWS && first === 0;
}

function turn(by) {
  view.page = Math.max(0, view.page + by);
  changed();
}

function fill(tr, item, top) {
  tr.entry = item;
  columns.forEach((c, k) => {
    const td = tr.children[k];
    if (c.key === 'name') return;
    if (c.key === 'spark') return spark(td.firstChild, item.past, ranged() ? item.past.length : MINUTE, top);
    const text = c.key === TROUBLE ? trouble(item) : (c.format || count)(c.of ? c.of(item) : value(item, c.key));
    if (td.textContent !== text) td.textContent = text;
    const share = c.mark && c.mark(item) || 0; // of calls, so the colour is in proportion
    td.classList.toggle('marked', share > 0);
    td.style.setProperty('--share', share > 0 ? 10 + Math.round(30 * Math.sqrt(Math.min(share, 1))) + '%' : '0%');
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
    if (c.key === 'spark') td.append(element('canvas', undefined, { role: 'img', 'aria-label': 'passes in each second' }));
    tr.append(td);
  }
  trs.set(item.number, tr);
  return tr;
}
