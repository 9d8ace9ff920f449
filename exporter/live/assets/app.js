'use strict';

const byId = id => document.getElementById(id);
const charts = {};
let subject = ALL, paused = null; // what is shown above, and the seconds of a page that was paused

const shown = () => paused || known.seconds;

function element(name, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  return e;
}

// title names what is shown. The total is the inbound calls of the service, as everywhere; a worker has none.
const title = name => name !== ALL ? name : known.inbound ? 'All inbound calls' : 'Sum of all resources; nested calls count again';

function draw() {
  const seconds = shown();
  byId('subject').textContent = title(subject);
  if (!seconds.length) return table();
  const column = c => line(seconds, subject, c), pass = column(PASS), times = seconds.map(s => s.at);
  charts.calls.show([times, pass, column(BLOCK), column(EXCEPTION)]);
  charts.times.show([times, column(AVERAGE), column(P99)]);
  charts.flight.show([times, column(FLIGHT)]);
  const last = c => value(seconds[seconds.length - 1], subject, c);
  const facts = [
    ['Pass', count(last(PASS))], ['Blocked', count(last(BLOCK))], ['Exceptions', count(last(EXCEPTION))],
    ['Average', duration(last(AVERAGE))], ['p99', duration(last(P99))], ['Most in flight', count(last(FLIGHT))],
    ['Busiest second', count(Math.max(0, ...pass))],
  ];
  byId('now').replaceChildren(...facts.map(([k, v]) => {
    const box = element('div');
    box.append(element('dt', k), element('dd', v));
    return box;
  }));
  table();
}

// choose shows one resource, or the total.
async function choose(name) {
  const before = subject;
  subject = name;
  byId('subject').textContent = title(name);
  byId('back').hidden = name === ALL;
  const room = byId('details').parentElement.style;
  room.minHeight = name === ALL ? '' : byId('details').parentElement.getBoundingClientRect().height + 'px'; // or the rows below jump up, and down again
  byId('details').hidden = true;
  draw();
  if (name === ALL) {
    const row = rowsByName.get(before);
    (row && row.isConnected ? row.querySelector('button') : byId('search')).focus();
    return;
  }
  byId('back').focus({ preventScroll: true });
  byId('subject').scrollIntoView({ block: 'nearest' });
  const answer = await fetch('resource?name=' + encodeURIComponent(name)).catch(() => null);
  if (!answer || !answer.ok || subject !== name) return;
  const d = await answer.json();
  if (subject !== name) return;
  byId('details').replaceChildren(shares('Origins, since the start', d.origins), shares('Called by', d.callers), shares('Blocked by reason', d.blocks.filter(s => s.block > 0)));
  byId('details').hidden = false;
  room.minHeight = '';
}

// shares is who has how much of a resource.
function shares(title, list) {
  const figure = element('figure'), t = element('table', undefined, { class: 'table' });
  for (const s of list) {
    const tr = element('tr');
    tr.append(element('td', s.name || '(none)'), element('td', s.pass ? count(s.pass) + ' passed' : ''), element('td', s.block ? count(s.block) + ' blocked' : ''));
    t.append(tr);
  }
  figure.append(element('figcaption', title), list.length ? t : element('p', 'none'));
  return figure;
}

addEventListener('DOMContentLoaded', () => {
  charts.calls = new Chart('calls', [{ label: 'pass', colour: 'pass', fill: true }, { label: 'blocked', colour: 'block' }, { label: 'exceptions', colour: 'bad' }], count);
  charts.times = new Chart('times', [{ label: 'average', colour: 'pass' }, { label: 'p99', colour: 'slow' }], duration);
  charts.flight = new Chart('flight', [{ label: 'most in flight', colour: 'flight', fill: true }], count);
  byId('pause').addEventListener('click', () => {
    paused = paused ? null : known.seconds.slice();
    byId('pause').textContent = paused ? 'Go on' : 'Pause';
    say(paused ? 'paused' : 'live');
    draw();
  });
  byId('back').addEventListener('click', () => choose(ALL));
  addEventListener('keydown', e => { if (e.key === 'Escape' && subject !== ALL && e.target !== byId('search')) choose(ALL); });
  byId('search').addEventListener('input', () => table(true));
  byId('rows').addEventListener('pointerenter', () => { pointed = true; });
  byId('rows').addEventListener('pointerleave', () => { pointed = false; });
  head();
  follow(text => {
    say(paused ? 'paused' : text);
    if (!paused) draw();
  });
});
