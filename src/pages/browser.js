// @ts-nocheck runs in the browser only: no DOM types here
// What the scripts of the pages share: an event stream that is read again after a break, local times, the words that say
// whether the page is live, and forms that are sent once.
import { ago, duration } from '../words/duration.js';

/** Pauses in ms before a stream that broke is asked for again: the first, and the longest. */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
/** How often times that are told relatively are told anew, in ms. */
const TIMES_MS = 20_000;
/** Answers after which asking again helps nobody. */
const FINAL = [401, 403, 404, 410];
const LOST = 'Connection lost, trying again…';
/** The host bounds the streams of a browser, and all that it has open. */
const TOO_MANY = 'Not live: too many pages are open. Trying again…';

/**
 * Reads an event stream until `isOver`, `signal` or an answer that is final, which `ended` is told for; after a break it is
 * asked for again, later each time until something comes. `told` hears how it is: the page's own line by default;
 * `onRefused`, that the place to go on from is not known (400).
 */
async function readStream(asked) {
  const { isOver = () => false, signal, told = setLive } = asked;
  const isDone = () => isOver() || signal?.aborted;
  let retryMs = FIRST_RETRY_MS;
  while (!isDone()) {
    let why = LOST;
    try {
      if (await readOnce(asked, isDone, () => (retryMs = FIRST_RETRY_MS))) return told(asked.ended);
    } catch (error) {
      // Else the host is away, or the connection broke.
      if (error.status === 429) why = TOO_MANY;
      if (error.status === 400) asked.onRefused?.();
    }
    if (isDone()) break;
    told(why);
    await pause(retryMs, signal);
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
  told('');
}

/**
 * As readStream, while somebody looks at the page: the stream is closed when the page has been hidden for `hiddenMs`, and
 * asked for again when it is shown.
 */
export async function readWhileShown({ hiddenMs, signal, ...asked }) {
  let isOver = false;
  for (let waits = hiddenMs === 0; !isOver && !signal?.aborted; waits = true) {
    if (waits) await shown(signal);
    isOver = await readUntilHidden({ ...asked, hiddenMs, signal });
  }
}

/** True: the page was not hidden for so long. */
async function readUntilHidden({ hiddenMs, signal, ...asked }) {
  const closing = new AbortController();
  const close = () => closing.abort();
  let timer;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, hiddenMs);
  };
  look();
  document.addEventListener('visibilitychange', look);
  signal?.addEventListener('abort', close);
  if (signal?.aborted) close();
  await readStream({ ...asked, signal: closing.signal });
  clearTimeout(timer);
  document.removeEventListener('visibilitychange', look);
  signal?.removeEventListener('abort', close);
  return !closing.signal.aborted;
}

/** Resolves on abort as well. */
function shown(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal?.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal?.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal?.addEventListener('abort', look);
    look();
  });
}

/** True: the answer is final. */
async function readOnce(asked, isDone, onFrame) {
  const { url, headers = () => ({}), onData, signal, told = setLive } = asked;
  const response = await fetch(url, {
    headers: { accept: 'text/event-stream', ...headers() },
    ...{ credentials: 'same-origin', cache: 'no-store', signal },
  });
  if (FINAL.includes(response.status)) return true;
  if (!response.ok)
    throw Object.assign(new Error(`HTTP ${response.status}`), { status: response.status });
  told('Live');
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    const frames = (rest + decoder.decode(value, { stream: true }))
      .replaceAll('\r\n', '\n')
      .split('\n\n');
    rest = frames.pop();
    for (const frame of frames) {
      const lines = frame.split('\n').filter((line) => line.startsWith('data:'));
      if (lines.length === 0) continue;
      onFrame();
      onData(JSON.parse(lines.map((line) => line.slice(5).trimStart()).join('\n')));
    }
    if (isDone()) {
      await reader.cancel();
      return false;
    }
  }
}

/** Ends early on abort. */
function pause(ms, signal) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal?.addEventListener('abort', resolve, { once: true });
  });
}

/** Tells the times of the page in the reader's own zone and words, now and again. */
export function keepTimes() {
  showTimes(document);
  setInterval(() => showTimes(document), TIMES_MS);
}

export function showTimes(root) {
  const all = root.querySelectorAll ? root.querySelectorAll('time[data-form]') : [];
  for (const time of all) {
    const at = new Date(time.dateTime);
    const date = at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
    if (time.dataset.form === 'time') time.textContent = at.toLocaleTimeString();
    if (time.dataset.form === 'date') time.textContent = date;
    if (time.dataset.form === 'ago') {
      time.textContent = ago(Date.now() - at.getTime());
      time.title = date;
    }
    if (time.dataset.form === 'left') {
      const left = at.getTime() - Date.now();
      time.textContent = left > 0 ? `${duration(left)} left` : 'time is up';
    }
  }
}

/** One form is sent once; a double tap sends nothing. */
export function guardForms() {
  document.addEventListener('submit', (event) => {
    if (event.target.method !== 'post') return;
    if (event.target.dataset.sent) return event.preventDefault();
    event.target.dataset.sent = 'yes';
    const button = event.submitter;
    if (button) button.textContent = 'Sending…';
  });
  // Back in the browser's cache: the form can be sent again.
  window.addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
}

/** Takes a part of the page from the server's own rendering. */
export function swap(id, fresh) {
  const now = document.getElementById(id);
  const next = fresh.getElementById(id);
  if (!now || !next) return;
  now.className = next.className;
  if (now.innerHTML !== next.innerHTML) now.innerHTML = next.innerHTML;
}

export function setLive(text) {
  const live = document.getElementById('live');
  live.textContent = text;
  live.className = text === 'Live' ? 'on' : '';
}

/** For who does not see the page, when they have heard the rest. */
export function announce(text) {
  document.getElementById('announce').textContent = text;
}
