// @ts-nocheck runs in the browser only: no DOM types here
// What the browser adds to the page: the live stream, local times and relative deadlines. Everything works without
// it, answering included. Served as it is, with the modules that it imports (RFC 0024: deltas are shown as they
// come).
import { emptyTimeline, foldEvent, movesHead } from './timeline.js';
import { announce, guardForms, keepTimes, readStream, showTimes, swap } from './browser.js';
import { renderItem } from './timeline-html.js';

function start() {
  const list = document.getElementById('timeline');
  if (!list) return;
  const { names = '{}', stories = '{}' } = list.dataset;
  const timeline = emptyTimeline({ names: JSON.parse(names), stories: JSON.parse(stories) });
  keepTimes();
  guardForms();
  follow(list, timeline);
}

/** Reads the event stream until the run has ended; after a break it goes on behind the last event seen. */
async function follow(list, timeline) {
  const rendered = Number(list.dataset.lastSequence);
  const dirty = new Set();
  const onEvent = (event) => {
    for (const item of foldEvent(timeline, event)) if (event.sequence > rendered) show(item);
    if (event.sequence > rendered && movesHead(timeline, event)) refreshHead();
  };
  const show = (item) => {
    if (dirty.size === 0) requestAnimationFrame(() => draw(list, dirty));
    dirty.add(item);
  };
  const url = new URL(list.dataset.events, location.href);
  if (!url.searchParams.has('streamMode')) url.searchParams.set('streamMode', 'debug');
  await readStream({
    url,
    ended: 'You are signed out. Reload the page to sign in, or open a new link.',
    headers: () =>
      timeline.lastSequence >= 0 ? { 'last-event-id': String(timeline.lastSequence) } : {},
    onData: (data) => eventsOf(data).forEach(onEvent),
    isOver: () => timeline.ended,
  });
}

function eventsOf(data) {
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

function isTyping() {
  return /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || '');
}

start();
