// @ts-nocheck runs in the browser only: no DOM types here
// What the browser adds to the page: the live stream, local times and relative deadlines. Everything works without
// it, answering included. Served as it is, with the two modules that it imports (RFC 0024: deltas are shown as they
// come).
import { emptyTimeline, foldEvent, movesHead } from './timeline.js';
import { duration } from '../words/duration.js';
import { renderItem } from './timeline-html.js';

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;

function start() {
  const list = document.getElementById('timeline');
  if (!list) return;
  const { names = '{}', stories = '{}' } = list.dataset;
  const timeline = emptyTimeline({ names: JSON.parse(names), stories: JSON.parse(stories) });
  showTimes(document);
  setInterval(() => showTimes(document), 20_000);
  guardForms();
  follow(list, timeline);
}

/** Reads the event stream until the run has ended; after a break it goes on behind the last event seen. */
async function follow(list, timeline) {
  const rendered = Number(list.dataset.lastSequence);
  const dirty = new Set();
  let retryMs = FIRST_RETRY_MS;
  const onEvent = (event) => {
    for (const item of foldEvent(timeline, event)) if (event.sequence > rendered) show(item);
    if (event.sequence > rendered && movesHead(timeline, event)) refreshHead();
  };
  const show = (item) => {
    if (dirty.size === 0) requestAnimationFrame(() => draw(list, dirty));
    dirty.add(item);
  };
  while (!timeline.ended) {
    try {
      await readStream(list.dataset.events, timeline, (event) => {
        retryMs = FIRST_RETRY_MS;
        onEvent(event);
      });
    } catch (error) {
      if (error.final) return setLive(error.message);
    }
    if (timeline.ended) break;
    setLive('Connection lost, trying again…');
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
  setLive('');
}

async function readStream(address, timeline, onEvent) {
  const url = new URL(address, location.href);
  if (!url.searchParams.has('streamMode')) url.searchParams.set('streamMode', 'debug');
  const headers = { accept: 'text/event-stream' };
  if (timeline.lastSequence >= 0) headers['last-event-id'] = String(timeline.lastSequence);
  const response = await fetch(url, { headers, credentials: 'same-origin', cache: 'no-store' });
  if ([401, 403, 404, 410].includes(response.status)) {
    throw Object.assign(new Error('This page’s session has ended. Open a new link.'), {
      final: true,
    });
  }
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  setLive('Live');
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + decoder.decode(value, { stream: true }))
      .replaceAll('\r\n', '\n')
      .split('\n\n');
    rest = frames.pop();
    for (const frame of frames) for (const event of eventsOf(frame)) onEvent(event);
    if (timeline.ended) return;
  }
}

function eventsOf(frame) {
  const lines = frame.split('\n').filter((line) => line.startsWith('data:'));
  if (lines.length === 0) return [];
  const data = JSON.parse(lines.map((line) => line.slice(5).trimStart()).join('\n'));
  return (Array.isArray(data) ? data : [data]).filter((event) => Number.isInteger(event.sequence));
}

/** Puts new and changed items in their places, keeping what the reader folded open or shut. */
function draw(list, dirty) {
  const atEnd = window.innerHeight + window.scrollY > document.body.scrollHeight - 120;
  for (const item of dirty) {
    const html = document.createElement('template');
    html.innerHTML = renderItem(item);
    const fresh = html.content.firstElementChild;
    const old = document.getElementById(item.key);
    // Of a long run the page shows the newest part: what began before it is not in it.
    if (!old && Number(item.key.slice(1)) <= Number(list.dataset.lastSequence)) continue;
    if (!old) list.append(fresh);
    else {
      const were = [...old.querySelectorAll('details')];
      [...fresh.querySelectorAll('details')].forEach((details, at) => {
        if (were[at]) details.open = were[at].open;
      });
      old.replaceWith(fresh);
    }
    showTimes(fresh);
    if (item.kind !== 'reasoning' && item.kind !== 'note')
      announce(`${item.title} ${item.state || ''}`);
  }
  dirty.clear();
  // Who reads along at the end stays there; who scrolled up is left alone.
  if (atEnd && !isTyping()) window.scrollTo({ top: document.body.scrollHeight });
}

let refreshing = false;
let refreshAgain = false;
/** Takes status and questions from the server's own rendering: one place decides what may be answered. */
async function refreshHead() {
  if (refreshing) return void (refreshAgain = true);
  refreshing = true;
  try {
    const response = await fetch(location.href, {
      headers: { accept: 'text/html' },
      credentials: 'same-origin',
      cache: 'no-store',
    });
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    swap('status', fresh);
    swap('notices', fresh);
    swapControls(fresh);
    mergeQuestions(fresh);
    document.title = fresh.title;
    showTimes(document);
  } catch {
    // The stream notices that the server is away and says so.
  } finally {
    refreshing = false;
    if (refreshAgain) {
      refreshAgain = false;
      setTimeout(refreshHead, 200);
    }
  }
}

function swap(id, fresh) {
  const now = document.getElementById(id);
  const next = fresh.getElementById(id);
  if (!now || !next) return;
  now.className = next.className;
  if (now.innerHTML !== next.innerHTML) now.innerHTML = next.innerHTML;
}

/** The same offers keep what was opened and typed there. */
function swapControls(fresh) {
  const now = document.getElementById('controls');
  const next = fresh.getElementById('controls');
  const offers = (box) => box?.firstElementChild?.dataset.offers;
  if (now && next && offers(now) !== offers(next)) now.replaceChildren(...next.childNodes);
}

/** A question that is still open keeps its form, with what was typed. */
function mergeQuestions(fresh) {
  const box = document.getElementById('questions');
  const open = new Map([...box.children].map((card) => [card.dataset.interrupt, card]));
  const next = [...fresh.getElementById('questions').children];
  const added = next.filter((card) => !open.has(card.dataset.interrupt));
  box.replaceChildren(...next.map((card) => open.get(card.dataset.interrupt) ?? card));
  for (const card of added)
    announce(card.querySelector('h2')?.textContent || 'A question was asked');
}

/** One answer is sent once; a double tap sends nothing. */
function guardForms() {
  document.addEventListener('submit', (event) => {
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

function showTimes(root) {
  const all = root.querySelectorAll ? root.querySelectorAll('time[data-form]') : [];
  for (const time of all) {
    const at = new Date(time.dateTime);
    if (time.dataset.form === 'time') time.textContent = at.toLocaleTimeString();
    if (time.dataset.form === 'date')
      time.textContent = at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
    if (time.dataset.form === 'left') {
      const left = at.getTime() - Date.now();
      time.textContent = left > 0 ? `${duration(left)} left` : 'time is up';
    }
  }
}

function isTyping() {
  return /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || '');
}

function setLive(text) {
  const live = document.getElementById('live');
  live.textContent = text;
  live.className = text === 'Live' ? 'on' : '';
}

function announce(text) {
  document.getElementById('announce').textContent = text;
}

start();
