'use strict';

// Following: the stream of what query says, as long as that is the same. Where the stream brings nothing, because something on
// the way holds it back, or the server has enough viewers, it asks each second instead, and now and then listens again.
const PATIENCE = 3000, AGAIN = 20000;
const following = { query: null, heard: 0, opened: 0, source: null, asking: null, taken: null };

// address is where to ask. What was drawn of another query does not count.
function address(path) {
  const query = new URLSearchParams(queryNow());
  const same = following.query === query.toString();
  following.query = query.toString();
  query.set('after', same ? known.after : known.after.replace(/-\d+$/, '-0'));
  return path + '?' + query;
}

function listen() {
  if (following.source) following.source.close();
  following.opened = Date.now();
  const source = following.source = new EventSource(address('stream'));
  source.onmessage = e => {
    following.heard = Date.now();
    take(JSON.parse(e.data), e.lastEventId);
    following.taken('live');
  };
  source.onerror = () => { if (Date.now() - following.heard < PATIENCE) say('the connection broke; trying again', true); }; // later, ask says it
}

async function ask() {
  const stop = following.asking = new AbortController(), limit = setTimeout(() => stop.abort(), 10000);
  try {
    const answer = await fetch(address('seconds'), { signal: stop.signal });
    if (!answer.ok) throw new Error(answer.status);
    const message = await answer.json();
    if (following.asking !== stop) return; // something else is asked for by now
    take(message, message.after);
    following.taken('live, asking each second');
  } catch {
    if (following.asking === stop) say('the server does not answer; trying again', true);
  } finally {
    clearTimeout(limit);
    if (following.asking === stop) following.asking = null;
  }
}

// settled reports whether what comes is what is wanted now.
const settled = () => following.query === new URLSearchParams(queryNow()).toString();

// refollow asks for what is wanted now, if that is something else.
let later = 0;
function refollow(delay) {
  clearTimeout(later);
  later = setTimeout(() => {
    if (!following.taken || settled()) return;
    if (following.asking) following.asking.abort();
    if (Date.now() - following.heard < PATIENCE) listen(); else ask();
  }, delay);
}

function follow(taken) {
  following.taken = taken;
  following.heard = Date.now();
  listen();
  setInterval(() => {
    const now = Date.now();
    if (now - following.heard < PATIENCE) return;
    if (now - following.opened > AGAIN) listen();
    if (!following.asking) ask();
  }, 1000);
}

// say is what the page is doing. Readers of screens hear it when it changes.
function say(text, bad) {
  const state = byId('state');
  if (known.away && known.total.seconds.has(known.away)) text += '; the server was started again after ' + clock(known.away);
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle('bad', !!bad);
}
