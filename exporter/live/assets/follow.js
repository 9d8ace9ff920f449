'use strict';

// The connection of a live page to its server: a stream for the current query. If the stream brings no events, because
// a proxy withholds them or the server has its maximum number of viewers, the page polls once a second, and retries the
// stream from time to time.
const STREAM_TIMEOUT = 3000; // milliseconds without an event, after which the page polls
const STREAM_RETRY = 20000; // milliseconds between two attempts to open a stream
const POLL_TIMEOUT = 10000;
const SILENCE = 6000; // milliseconds without a message, after which the page reports it

const connection = {
  query: null, // query string of the stream or of the last poll
  stream: null, // EventSource
  openedAt: 0, // time of the last attempt to open a stream
  lastEvent: 0, // time of its last event
  polling: null, // AbortController of the current poll
  fullNote: '', // why the server has refused the stream
  onMessage: null, // called with the status of the page after each message
};

// requestURL returns the address of the stream or of a poll, and notes its query.
function requestURL(path) {
  const query = new URLSearchParams(currentQuery());
  connection.query = query.toString();
  query.set('after', received.after);
  if (subject !== TOTAL && received.resource.newest) query.set('had', received.resource.newest);
  return path + '?' + query;
}

// openStream opens a stream and closes the one before.
function openStream() {
  if (connection.stream) connection.stream.close();
  connection.openedAt = Date.now();
  const stream = connection.stream = new EventSource(requestURL('stream'));
  stream.onmessage = e => {
    Object.assign(connection, { lastEvent: Date.now(), fullNote: '' });
    applyMessage(JSON.parse(e.data));
    connection.onMessage('live');
  };
  stream.addEventListener('full', e => {
    stream.close(); // the browser would otherwise reconnect immediately
    Object.assign(connection, { lastEvent: 0, fullNote: ': ' + e.data });
    if (!connection.polling) poll();
  });
  stream.onerror = () => { // after the timeout, poll reports the error
    if (Date.now() - connection.lastEvent < STREAM_TIMEOUT) showStatus('the connection broke; trying again', true);
  };
}

// poll requests one message.
async function poll() {
  const request = connection.polling = new AbortController();
  const timer = setTimeout(() => request.abort(), POLL_TIMEOUT);
  const isCurrent = () => connection.polling === request; // otherwise a newer request has replaced this one
  try {
    const response = await fetch(requestURL('seconds'), { signal: request.signal });
    const refusal = response.ok ? '' : await response.text();
    const message = refusal ? null : await response.json();
    if (!isCurrent()) return;
    if (message) {
      applyMessage(message);
      connection.onMessage('live, asking each second' + connection.fullNote);
    } else {
      showStatus('the server refuses: ' + refusal.trim().slice(0, 200), true);
    }
  } catch {
    if (isCurrent()) showStatus('the server does not answer; trying again', true);
  } finally {
    clearTimeout(timer);
    if (isCurrent()) connection.polling = null;
  }
}

// disconnect ends the stream and the poll. A message contains only new data for its own query, so a message of the old
// query must not be added to the data of the next one.
function disconnect() {
  if (connection.stream) connection.stream.close();
  if (connection.polling) connection.polling.abort();
  Object.assign(connection, { query: null, polling: null });
}

// inSync reports whether the connection has the current query.
const inSync = () => connection.query === new URLSearchParams(currentQuery()).toString();

// reconnect connects with the current query after a delay, unless the connection has it already.
let reconnectTimer = 0;
function reconnect(delay) {
  clearTimeout(reconnectTimer);
  reconnectTimer = setTimeout(() => {
    if (!connection.onMessage || inSync()) return;
    disconnect();
    if (Date.now() - connection.lastEvent < STREAM_TIMEOUT) openStream(); else poll();
  }, delay);
}

// connect opens the first stream, and checks once a second whether it brings events.
function connect(onMessage) {
  connection.onMessage = onMessage;
  connection.lastEvent = Date.now();
  openStream();
  setInterval(() => {
    const now = Date.now();
    showTime();
    if (now - connection.lastEvent < STREAM_TIMEOUT) return;
    if (now - connection.openedAt > STREAM_RETRY) openStream();
    if (!connection.polling) poll();
  }, 1000);
}

// showTime shows the last second in the charts, and how far the data is behind the clock of the server.
function showTime() {
  const behind = Math.floor(secondsBehind());
  const last = lastShown();
  byId('second').textContent = received.lastSecond ? formatTime(last) : '–';
  byId('second').dateTime = received.lastSecond ? new Date(last * 1000).toISOString() : '';
  byId('behind').textContent = behind >= 3 ? (paused ? 'the server is ' : '') + formatCount(behind) + ' s behind' : '';
  if (received.receivedAt && performance.now() - received.receivedAt > SILENCE) {
    showStatus('nothing has come for ' + SILENCE / 1000 + ' seconds; trying again', true);
  }
}

// showStatus shows the status of the page. Screen readers announce the text when it changes, so an equal text is not
// set again. For as long as the charts keep the last second before a restart, the status mentions the restart.
function showStatus(text, bad) {
  const state = byId('state'), { restartedAfter } = received;
  if (restartedAfter && received.total.seconds.has(restartedAfter)) {
    text += '; the server was started again after ' + formatTime(restartedAfter);
  }
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle('bad', !!bad);
}
