'use strict';

// follow listens to the stream, and calls taken when something came. Where the stream brings nothing, because something on
// the way holds it back, or the server has enough viewers, it asks each second instead, and now and then listens again.
function follow(taken) {
  const PATIENCE = 3000, AGAIN = 20000;
  let heard = Date.now(), opened = 0, source = null, asking = false;
  const position = () => 'after=' + (known.epoch ? [known.after, known.epoch, known.names.length].join('-') : '');
  const listen = () => {
    if (source) source.close();
    opened = Date.now();
    source = new EventSource('stream?' + position());
    source.onmessage = e => {
      heard = Date.now();
      take(JSON.parse(e.data));
      taken('live');
    };
    source.onerror = () => { if (Date.now() - heard < PATIENCE) say('the connection broke; trying again', true); }; // later, ask says it
  };
  const ask = async () => {
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch('seconds?' + position(), { signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error(answer.status);
      take(await answer.json());
      taken('live, asking each second');
    } catch {
      say('the server does not answer; trying again', true);
    }
    asking = false;
  };
  listen();
  setInterval(() => {
    const now = Date.now();
    if (now - heard < PATIENCE) return;
    if (now - opened > AGAIN) listen();
    ask();
  }, 1000);
}

// say is what the page is doing. Readers of screens hear it when it changes.
function say(text, bad) {
  const state = byId('state');
  if (known.away && known.away >= known.seconds[0].at) text += '; the server was started again after ' + clock(known.away);
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle('bad', !!bad);
}
