'use strict';

// A page of the table of resources. The server sorts and searches.
const ROWS = Number(document.documentElement.dataset.rows); // on a page
const TROUBLE = 'trouble', PEAK = 'peak'; // sort keys that are no columns of a message
const rowElements = new Map(); // tr elements, by row number
let heldRows = null; // rows in the order that the user sees, while the pointer or the focus is on one; otherwise null
let pointerOver = false; // whether the pointer is over the rows

// The columns of the table:
//   zoomedTitle  replaces title while the charts are zoomed
//   format       formats a value, formatCount by default
//   derive       computes a value that is no column of a message
//   highlight    returns the strength of the background color, 0 to 1; only for rows in trouble
const columns = [
  { key: 'name', title: 'Resource' },
  { key: TROUBLE, title: 'Trouble' },
  { key: PASS, title: 'Pass' },
  { key: BLOCK, title: 'Blocked', highlight: x => value(x, BLOCK) / (value(x, PASS) + value(x, BLOCK)) },
  { key: EXCEPTION, title: 'Exceptions', highlight: x => value(x, EXCEPTION) / value(x, COMPLETE) },
  { key: P99, title: 'p99', format: formatDuration },
  { key: AVERAGE, title: 'Average', format: formatDuration },
  { key: FLIGHT, title: RECORDED ? 'In flight, maximum' : 'In flight, average', format: formatCalls },
  {
    key: PEAK, title: 'Busiest of a minute', zoomedTitle: 'Busiest second',
    derive: x => Math.max(0, ...x.past),
  },
  { key: 'spark', title: 'Last minute', zoomedTitle: 'Passes' },
].filter(c => !RECORDED || c.key !== P99);

// tableRange returns the seconds of the table, from the first to before the last: the zoomed range, or the second at
// which the page is paused. It returns null for the last sealed second.
const tableRange = () => view.zoom || paused && [paused, paused + 1] || null;
const isZoomed = () => view.zoom !== null;

// currentQuery returns the parameters of a request for the current view.
function currentQuery() {
  const q = {
    sort: view.sort, up: String(view.descending === (view.sort === 'name')), search: view.search,
    from: String(view.page * ROWS),
  };
  if (subject !== TOTAL) q.resource = subject;
  if (tableRange()) q.range = tableRange().join('-');
  if (!tableRange() && view.minutes <= 3) q.past = '180'; // without it, the server sends its whole history
  if (heldRows && received.table.matches > ROWS) q.held = heldRows.map(x => x.number).join('.');
  return q;
}

// drawHead creates the head of the table. A click on a title sorts by its column; a second click reverses the order.
function drawHead() {
  byId('head').replaceChildren(...columns.map(c => {
    const sorted = view.sort === c.key, title = isZoomed() && c.zoomedTitle || c.title;
    const th = element('th', undefined, {
      scope: 'col', class: c.key, 'aria-sort': sorted ? (view.descending ? 'descending' : 'ascending') : 'none',
    });
    if (c.key === 'spark') { th.textContent = title; return th; }
    const arrow = sorted ? (view.descending ? '\u00a0↓' : '\u00a0↑') : '';
    const b = element('button', title + arrow, { type: 'button' });
    if (c.key === TROUBLE) {
      b.title = 'Calls that hang, traffic that has stopped, and more failed, refused or slow calls than usual, in ' +
        'ten seconds';
    }
    b.addEventListener('click', () => {
      if (sorted) view.descending = !view.descending;
      else Object.assign(view, { sort: c.key, descending: c.key !== 'name' });
      view.page = 0;
      viewChanged();
      byId('head').children[columns.indexOf(c)].firstChild.focus();
    });
    th.append(b);
    return th;
  }));
}

// updateHold keeps the rows in their current order while the user is about to select one: while the pointer is over a
// row, or the keyboard focus is on one. Focus that remains after a click holds nothing.
function updateHold() {
  const held = pointerOver || byId('rows').querySelector(':focus-visible') !== null;
  if (held === (heldRows !== null)) return;
  heldRows = held ? [...byId('rows').children].map(tr => tr.entry) : null;
  if (!held) drawTable();
  reconnect(200);
}

// orderedRows returns the rows in the order of the table. Held rows keep their positions, and new rows follow them.
function orderedRows() {
  const list = received.table.rows;
  if (!heldRows) return list;
  const current = new Map(list.map(x => [x.number, x]));
  const first = heldRows.map(x => current.get(x.number) || { ...x, row: null }); // without numbers if it was retired
  first.forEach(x => current.delete(x.number));
  heldRows = [...first, ...current.values()].slice(0, Math.max(ROWS, first.length));
  return heldRows;
}

// drawTable updates the rows. It reuses the elements of rows that remain, because a new element would lose the focus,
// and a click would miss it.
function drawTable() {
  const list = orderedRows();
  byId('none').hidden = list.length > 0;
  byId('none').textContent = emptyText();
  const pausedAt = paused ? ', in the second ' + formatTime(paused) : '';
  byId('of').textContent = isZoomed() ? ': ' + formatRange(view.zoom) : pausedAt;
  const body = byId('rows'), focused = document.activeElement;
  const top = view.commonScale ? Math.max(1, ...list.flatMap(x => x.past)) : 0;
  list.forEach((item, i) => {
    const tr = rowElements.get(item.number) || createRow(item);
    fillRow(tr, item, top);
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] || null);
  });
  while (body.children.length > list.length) body.lastChild.remove();
  for (const [number, tr] of rowElements) if (!tr.isConnected) rowElements.delete(number);
  // A row loses the focus when it moves.
  if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
  drawPager(list.length);
}

// emptyText says why the table is empty.
function emptyText() {
  const { end, resources } = received.table;
  if (!end) return 'The first second is not over yet.';
  if (tableRange() && !resources) return 'Nothing is kept of these seconds any more.';
  if (view.search) return 'No resource has such a name.';
  return resources ? 'There are no more resources.' : 'There are no resources yet.';
}

// drawPager shows the range of the n rows on this page, and the number of all rows.
function drawPager(n) {
  const { matches } = received.table, first = view.page * ROWS;
  const range = n ? formatCount(first + 1) + '–' + formatCount(first + n) + ' of ' : '';
  const text = range + formatCount(Math.max(matches, n)) + (view.search ? ' found' : '');
  if (byId('place').textContent !== text) byId('place').textContent = text;
  byId('previous').disabled = first === 0;
  byId('next').disabled = first + n >= matches;
  byId('previous').hidden = byId('next').hidden = matches <= ROWS && first === 0;
}

// turnPage shows the page before (-1) or after (1) the current one.
function turnPage(by) {
  view.page = Math.max(0, view.page + by);
  viewChanged();
}

// fillRow updates the cells of a row. top is the scale of the small charts, or 0 if each has its own scale.
function fillRow(tr, item, top) {
  tr.entry = item;
  tr.classList.toggle('troubled', item.kind > 0);
  columns.forEach((c, k) => {
    const td = tr.children[k];
    if (c.key === 'name') return;
    if (c.key === 'spark') {
      drawSparkline(td.firstChild, item.past, isZoomed() ? item.past.length : MINUTE, top);
      return;
    }
    const format = c.format || formatCount;
    const text = c.key === TROUBLE ? item.trouble : format(c.derive ? c.derive(item) : value(item, c.key));
    if (td.textContent !== text) td.textContent = text;
    const strength = item.kind && c.highlight && c.highlight(item) || 0; // a healthy row has no color
    td.classList.toggle('marked', strength > 0);
    // The color grows with the square root, so a share of 1 % is already visible.
    const percent = strength > 0 ? 10 + Math.round(30 * Math.sqrt(Math.min(strength, 1))) : 0;
    td.style.setProperty('--share', percent + '%');
  });
}

// createRow creates the elements of a row. fillRow adds everything except the name, which never changes.
function createRow(item) {
  const tr = element('tr');
  for (const c of columns) {
    const td = element('td', undefined, { class: c.key });
    if (c.key === 'name') {
      const shown = visible(item.name), b = element('button', shown, { type: 'button', title: shown });
      b.addEventListener('click', () => choose(item.name));
      td.append(b);
    }
    if (c.key === 'spark') {
      td.append(element('canvas', undefined, { role: 'img', 'aria-label': 'passes in each second' }));
    }
    tr.append(td);
  }
  rowElements.set(item.number, tr);
  return tr;
}
