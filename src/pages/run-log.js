// @ts-nocheck runs in the browser only: no DOM types here
// A run's log in the browser: its stream is followed, folded as the server folds it, and drawn into a list, that of the
// page or of a thread in it (RFC 0024: deltas are shown as they come).
import { emptyTimeline, foldEvent, movesHead } from './timeline.js';
import { announce, readWhileShown, showTimes } from './browser.js';
import { loadAgain } from './made-again.js';
import { renderItem } from './timeline-html.js';

/**
 * A page that was hidden for so long, in ms, closes its streams, since the host bounds those of a browser. Until then the
 * title of a tab in the background says what its run asks.
 */
const HIDDEN_MS = 3_600_000;
/** Of each list that is shown, by its element. */
const timelines = new WeakMap();

export function timelineIn(list) {
  return timelines.get(list);
}

/**
 * Reads the event stream until the run has ended or `signal` aborts, but for a page that is hidden for long; after a break, or
 * when the page is shown again, it goes on behind the last event seen. Where that event is not in the log any more, or
 * another one is in the place of one that was seen, the log was made again: the page is to be loaded again.
 * `told` hears how the stream is, and `onMove` that questions or status may be others now.
 */
export async function followLog(list, { told, signal, onMove, isMain }) {
  const timeline = timelines.get(list) ?? begun(list);
  const rendered = Number(list.dataset.lastSequence);
  const dirty = new Set();
  const onEvent = (event) => {
    for (const item of foldEvent(timeline, event)) if (event.sequence > rendered) show(item);
    if (timeline.isRetold) return;
    if (event.sequence > rendered && movesHead(timeline, event)) onMove();
  };
  const show = (item) => {
    if (dirty.size === 0) requestAnimationFrame(() => draw(list, dirty, isMain));
    dirty.add(item);
  };
  const url = new URL(list.dataset.events, location.href);
  if (!url.searchParams.has('streamMode')) url.searchParams.set('streamMode', 'debug');
  await readWhileShown({
    url,
    signal,
    hiddenMs: HIDDEN_MS,
    told,
    ended: 'You are signed out. Reload the page to sign in, or open a new link.',
    headers: () => resumeAfter(timeline),
    onRefused: () => (timeline.isRetold = timeline.lastSequence >= 0),
    onData: (data) => eventsOf(data).forEach(onEvent),
    isOver: () => timeline.ended || timeline.isRetold,
  });
  if (!timeline.isRetold) return;
  loadAgain();
  onMove();
}

/** By its id: a sequence may be another event's since. */
function resumeAfter({ eventIds, lastSequence }) {
  return lastSequence >= 0 ? { 'last-event-id': eventIds.get(lastSequence) } : {};
}

function begun(list) {
  const { names = '{}', stories = '{}', prefix = '', fork, lastSequence, lastEvent } = list.dataset;
  const given = { names: JSON.parse(names), stories: JSON.parse(stories), prefix };
  if (fork) given.fork = JSON.parse(fork);
  if ('canFork' in list.dataset) given.canFork = true;
  const timeline = emptyTimeline(given);
  // The stream begins at the start, and may be of a log that was made again since the page was rendered.
  if (lastEvent) timeline.eventIds.set(Number(lastSequence), lastEvent);
  timelines.set(list, timeline);
  return timeline;
}

function eventsOf(data) {
  return (Array.isArray(data) ? data : [data]).filter((event) => Number.isInteger(event.sequence));
}

/** Puts new and changed items in their places, keeping what the reader folded open or shut, and what is in the threads. */
function draw(list, dirty, isMain) {
  const atEnd = window.innerHeight + window.scrollY > document.body.scrollHeight - 120;
  for (const item of dirty) {
    const html = document.createElement('template');
    html.innerHTML = renderItem(item);
    const fresh = html.content.firstElementChild;
    const old = document.getElementById(item.key);
    // Of a long run the page shows the newest part: what began before it is not in it.
    if (!old && item.sequence <= Number(list.dataset.lastSequence)) continue;
    if (!old) list.append(fresh);
    else {
      keepFolds(old, fresh);
      old.replaceWith(fresh);
    }
    showTimes(fresh);
    if (isMain && item.kind !== 'reasoning' && item.kind !== 'note')
      announce(`${item.title} ${item.state || ''}`);
  }
  dirty.clear();
  // Who reads along at the end stays there; who scrolled up is left alone.
  if (isMain && atEnd && !isTyping()) window.scrollTo({ top: document.body.scrollHeight });
}

function keepFolds(old, fresh) {
  const were = foldsOf(old);
  foldsOf(fresh).forEach((details, at) => {
    if (were[at]) details.open = were[at].open;
  });
  for (const causes of old.querySelectorAll(':scope > .causes')) fresh.append(causes);
  const threads = new Map(threadsOf(old).map((thread) => [thread.dataset.run, thread]));
  for (const thread of threadsOf(fresh)) {
    const known = threads.get(thread.dataset.run);
    if (!known) continue;
    known.toggleAttribute('data-running', thread.hasAttribute('data-running'));
    thread.replaceWith(known);
  }
}

function threadsOf(item) {
  return [...item.querySelectorAll(':scope > .thread')];
}

/** Of the item itself, not of what its threads show. */
function foldsOf(item) {
  return [...item.querySelectorAll(':scope > details:not(.thread)')];
}

function isTyping() {
  return /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || '');
}
