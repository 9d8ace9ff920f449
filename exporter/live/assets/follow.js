'use strict';

// Following: the stream of what query says, as long as that is the same. Where the stream brings nothing, because something on
// the way holds it back, or the server has enough viewers, it asks each second instead, and now and then listens again.
const PATIENCE = 3000, SILENCE = 6000, AGAIN = 20000;
const following = { query: null, heard: 0, opened: 0, full: '', source: null, asking: null, taken: null };

// address is where to ask.
function address(path) {
  const query = new URLSearchParams(queryNow());
  following.query = query.toString();
  query.set('after', known.after);
  if (subject !== ALL && known.resource.newest) query.set('had', known.resource.newest);
  return path + '?' + query;
}

function listen() {
  if (following.source) following.source.close();
  following.opened = Date.now();
  const source = following.source = new EventSource(address('stream'));
  source.onmessage = e => {
    Object.assign(following, { heard: Date.now(), full: '' });
    take(JSON.parse(e.data));
    following.taken('live');
  };
  source.addEventListener('full', e => { // or the browser would ask for a place at once
    source.close();
    Object.assign(following, { heard: 0, full: ': ' + e.data });
    if (!following.asking) ask();
  });
  source.onerror = () => { if (Date.now() - following.heard < PATIENCE) say('the connection broke; trying again', true); }; // later, ask says it
}

async function ask() {
  const stop = following.asking = new AbortController(), limit = setTimeout(() => stop.abort(), 10000);
  try {
    const answer = await fetch(address('seconds'), { signal: stop.signal }), refusal = answer.ok ? '' : await answer.text();
    const message = refusal ? null : await answer.json();
    if (following.asking !== stop) return; // something else is asked for by now
    if (message) take(message); else say('the server refuses: ' + refusal.trim().slice(0, 200), true);
    if (message) following.taken('live, asking each second' + following.full);
  } catch {
    if (following.asking === stop) say('the server does not answer; trying again', true);
  } finally {
    clearTimeout(limit);
    if (following.asking === stop) following.asking = null;
  }
}

// unfollow has nothing come any more of what was asked for. What comes is only what is new, so it must not be taken for the beginning of
// something else.
function unfollow() {
  if (following.source) following.source.close();
  if (following.asking) following.asking.abort();
  Object.assign(following, { query: null, asking: null });
}

// settled reports whether what comes is what is wanted now.
const settled = () => following.query === new URLSearchParams(queryNow()).toString();

// refollow asks for what is wanted now, if that is something else.
let later = 0;
function refollow(delay) {
  clearTimeout(later);
  later = setTimeout(() => {
    if (!following.taken || settled()) return;
    unfollow();
    if (Date.now() - following.heard < PATIENCE) listen(); else ask();
  }, delay);
}

function follow(taken) {
  following.taken = taken;
  following.heard = Date.now();
  listen();
  setInterval(() => {
    const now = Date.now();
    tell();
    if (now - following.heard < PATIENCE) return;
    if (now - following.opened > AGAIN) listen();
    if (!following.asking) ask();
  }, 1000);
}

// tell tells the second that is shown last, and how far behind that is.
function tell() {
  const late = Math.floor(behind());
  byId('second').textContent = known.at ? clock(lastShown()) : '–';
  byId('second').dateTime = known.at ? new Date(lastShown() * 1000).toISOString() : '';
  byId('behind').textContent = late >= 3 ? (paused ? 'the server is ' : '') + count(late) + ' s behind' : '';
  if (known.heard && performance.now() - known.heard > SILENCE) say('nothing has come for ' + SILENCE / 1000 + ' seconds; trying again', true);
}

// say is what the page is doing. Readers of screens hear it when it changes.
function say(text, bad) {
  const state = byId('state');
  if (known.away && known.total.seconds.has(known.away)) text += '; the server was started again after ' + clock(known.away);
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle('bad', !!bad);
}
