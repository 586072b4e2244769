// @ts-nocheck runs in the browser only: no DOM types here
// Runs that a run started, as threads of its page: each opens below the call that started it, shows its own log, and may
// hold threads itself (seed 003 §3.4). What runs is opened at once, as far as streams go.
import { showTimes } from './browser.js';
import { followLog, timelineIn } from './run-log.js';

/** Threads that are followed at a time: a browser has six connections for one host, and the page's own needs some. */
const MAX_LIVE = 3;
/** A list's threads that the page has open in one another. */
const MAX_DEPTH = 8;

/** By thread: what stops its stream. */
const live = new Map();
/** Threads that were opened by the script or by a reader; who closed one is not shown it again. */
const known = new WeakSet();
/** Threads that were followed to their run's end. */
const ended = new WeakSet();

/** `onMove`: questions or status may be others now. */
export function keepThreads(onMove) {
  const onToggle = ({ target }) => {
    if (!target.matches?.('details.thread')) return;
    known.add(target);
    if (target.open) void openThread(target, onMove);
    else closeThread(target);
  };
  const openRunning = () => {
    for (const thread of document.querySelectorAll('.thread[data-running]:not([open])')) {
      if (live.size >= MAX_LIVE) return;
      if (known.has(thread) || depthOf(thread) > MAX_DEPTH) continue;
      known.add(thread);
      thread.open = true;
      void openThread(thread, onMove);
    }
  };
  // A toggle does not bubble.
  document.addEventListener('toggle', onToggle, true);
  const places = { childList: true, subtree: true };
  new MutationObserver(openRunning).observe(document.getElementById('timeline'), places);
  openRunning();
}

/** Whether there is a run below that this page does not follow. */
export function hasUnfollowed() {
  const running = [...document.querySelectorAll('.thread[data-running]')];
  return running.some((thread) => !live.has(thread) && !ended.has(thread));
}

function depthOf(thread) {
  let depth = 0;
  for (let at = thread; at; at = at.parentElement.closest('.thread')) depth++;
  return depth;
}

function closeThread(thread) {
  live.get(thread)?.abort();
  live.delete(thread);
}

async function openThread(thread, onMove) {
  if (live.has(thread)) return;
  const told = (text) => (thread.querySelector(':scope > .facts > .live').textContent = text);
  const stop = new AbortController();
  const follows = live.size < MAX_LIVE;
  if (follows) live.set(thread, stop);
  try {
    const list = thread.querySelector(':scope > ol') ?? (await load(thread, told));
    if (!list || stop.signal.aborted) return;
    if (!follows) return told(`As it was when it was opened: ${MAX_LIVE} others are followed.`);
    await followLog(list, { told, onMove, signal: stop.signal, isMain: false });
    if (timelineIn(list).ended) ended.add(thread);
  } finally {
    if (live.get(thread) === stop) live.delete(thread);
  }
}

/** The child's own page knows what its log looks like, and who may see it. */
async function load(thread, told) {
  const url = `/pages/runs/${encodeURIComponent(thread.dataset.run)}`;
  const asked = { headers: { accept: 'text/html' }, cache: 'no-store' };
  const response = await fetch(url, asked).catch(() => undefined);
  if (!response?.ok) {
    told(
      response ? 'Who is signed in sees it.' : 'The host is away: close this and open it again.',
    );
    return undefined;
  }
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const list = page.getElementById('timeline');
  const prefix = `${thread.dataset.run}-`;
  list.removeAttribute('id');
  list.dataset.prefix = prefix;
  for (const item of list.children) item.id = prefix + item.id;
  thread.append(list);
  showTimes(list);
  return list;
}
