'use strict';

// A recorded page has its seconds in it, and asks nobody: this stands in the place of follow.js, and of the server. The seconds are
// compressed; offset is how many seconds their zone is ahead of UTC. Of each resource and column there is a list with a number for each second.
const recording = { span: null, offset: 0, columns: [PASS, BLOCK, COMPLETE, EXCEPTION, AVERAGE, FLIGHT], total: null, resources: [] };

async function follow(taken) {
  try {
    const bytes = Uint8Array.from(atob(byId('recording').textContent.trim()), c => c.charCodeAt(0));
    Object.assign(recording, await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json());
  } catch (e) {
    return say('the seconds cannot be read: ' + e.message, true);
  }
  recording.offset /= 1e9; // of nanoseconds
  recording.span = [recording.first, recording.first + KEEP];
  known.places = Object.fromEntries(recording.columns.map((name, i) => [name, i + 1])); // behind the time, or the number
  known.total.add(secondsOf(recording.total), known.places, true);
  recording.resources.forEach((r, i) => Object.assign(r, { number: i + 1, lower: r.name.toLowerCase() }));
  recording.taken = taken;
  restore();
  refollow();
}

// secondsOf are the rows of a resource, as a server sends them.
const secondsOf = r => Array.from({ length: KEEP }, (_, i) => [recording.first + i, ...recording.columns.map(name => r[name][i])]);

function refollow() {
  if (!recording.taken) return;
  const r = recording.resources.find(x => x.name === subject);
  if (r && !known.resource.newest) known.resource.add(secondsOf(r), known.places, true);
  Object.assign(known, { there: !!r, details: r ? { limits: (r.limits || []).map(l => ({ name: ['qps', 'concurrency'][l.Grade], pass: l.Count })) } : null, table: tableOf(queryNow()) });
  const taken = recording.taken;
  recording.taken = null; // it would ask again
  taken('recorded: nothing here changes');
  recording.taken = taken;
}

const unfollow = () => {};
const settled = () => true;

// tableOf is a page of the table: sums of the seconds that are shown, and the greatest passes of each few for a small chart.
function tableOf(q) {
  const [first, end] = range().map(t => t - recording.first), each = Math.ceil((end - first) / MINUTE);
  const rows = recording.resources.filter(r => r.lower.includes(q.search.toLowerCase())).map(r => {
    const of = name => r[name].slice(first, end), sum = list => list.reduce((a, b) => a + b, 0), complete = of(COMPLETE);
    const merge = { [AVERAGE]: list => sum(complete) ? sum(list.map((v, i) => v * complete[i])) / sum(complete) : -1, [FLIGHT]: list => Math.max(...list) };
    const row = [r.number, ...recording.columns.map(name => (merge[name] || sum)(of(name))), sum(of(EXCEPTION)), sum(of(BLOCK))];
    const pass = of(PASS), past = [];
    for (let i = 0; i < pass.length; i += each) past.push(Math.max(...pass.slice(i, i + each)));
    return { number: r.number, name: r.name, lower: r.lower, past, row, places: { ...known.places, [FAILED]: row.length - 2, [REFUSED]: row.length - 1 } };
  });
  const keys = { name: () => [0], [TROUBLE]: x => [value(x, FAILED), value(x, REFUSED), value(x, PASS)], [PEAK]: x => [Math.max(...x.past)] }[q.sort] || (x => [value(x, q.sort)]);
  const names = (a, b) => a.lower < b.lower ? -1 : a.lower > b.lower ? 1 : a.number - b.number;
  const order = (a, b) => keys(b).map((k, i) => k - keys(a)[i]).find(d => d) || names(a, b);
  rows.sort((a, b) => q.up === 'true' ? order(b, a) : order(a, b));
  return { first: range()[0], end: range()[1], rows: rows.slice(Number(q.from), Number(q.from) + ROWS), resources: recording.resources.length, matches: rows.length };
}

// tell tells the first and the last second.
function tell() {
  if (recording.span) byId('second').textContent = new Date((recording.first + recording.offset) * 1000).toISOString().slice(0, 10) + ', ' + from(recording.span);
}

function say(text, bad) {
  byId('state').textContent = text;
  byId('state').classList.toggle('bad', !!bad);
}
