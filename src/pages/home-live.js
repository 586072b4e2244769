// @ts-nocheck runs in the browser only: no DOM types here
// What the browser adds to the host's page: when something of the runs changes the page is read again, and what differs
// takes its place. The filter, its fields and whoever is in it are left alone. A page that nobody looks at does nothing.
import {
  announce,
  guardForms,
  keepTimes,
  readWhileShown,
  setLive,
  showTimes,
  swap,
} from './browser.js';

const SIGNED_OUT = 'You are signed out. Reload the page to sign in.';
/** Lists, whose entries have keys: one that did not change stays, with the focus that is in it. */
const LISTS = ['waiting-list', 'runs-list'];
const PARTS = ['notices', 'waiting-head', 'waiting-more', 'runs-more'];
/** Entries as the server made them, before times in them were told in the reader's words. */
const made = new WeakMap();
let signedOut = false;

async function start() {
  const { events } = document.querySelector('main').dataset;
  for (const id of LISTS) for (const entry of entriesOf(id)) made.set(entry, entry.outerHTML);
  keepTimes();
  guardForms();
  await readWhileShown({
    url: new URL(events, location.href),
    ended: SIGNED_OUT,
    onData: refresh,
    isOver: () => signedOut,
    hiddenMs: 0,
  });
}

let refreshing = false;
let refreshAgain = false;
/** One at a time; what changes meanwhile is read once more. */
async function refresh() {
  if (refreshing) return void (refreshAgain = true);
  refreshing = true;
  do {
    refreshAgain = false;
    await readAgain().catch(() => {
      // The stream notices that the host is away and says so.
    });
  } while (refreshAgain && !document.hidden);
  refreshing = false;
}

async function readAgain() {
  const response = await fetch(location.href, {
    ...{ headers: { accept: 'text/html' }, credentials: 'same-origin', cache: 'no-store' },
  });
  if (response.status === 401) {
    signedOut = true;
    return setLive(SIGNED_OUT);
  }
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  const asked = new Set(entriesOf('waiting-list').map(({ dataset }) => dataset.key));
  for (const id of PARTS) swap(id, fresh);
  for (const id of LISTS) merge(id, fresh);
  document.title = fresh.title;
  showTimes(document);
  const news = entriesOf('waiting-list').filter(({ dataset }) => !asked.has(dataset.key));
  if (news.length > 0) announce(`Waits for you: ${news.map(titleOf).join('; ')}`);
}

function merge(id, fresh) {
  const list = document.getElementById(id);
  const now = new Map(entriesOf(id).map((entry) => [entry.dataset.key, entry]));
  const next = [...(fresh.getElementById(id)?.children ?? [])].map((entry) => {
    const old = now.get(entry.dataset.key);
    const html = entry.outerHTML;
    if (old && made.get(old) === html) return old;
    made.set(entry, html);
    return entry;
  });
  const focused = document.activeElement;
  const within = focused?.closest(`#${id} [data-key]`)?.dataset.key;
  const at = { x: scrollX, y: scrollY };
  place(list, next);
  if (within === undefined || document.contains(focused)) return;
  // The entry with the focus was made anew: the same link in it goes on having it.
  const again = next.find((entry) => entry.dataset.key === within);
  again
    ?.querySelector(`a[href="${CSS.escape(focused.getAttribute('href') ?? '')}"]`)
    ?.focus({ preventScroll: true });
  scrollTo(at.x, at.y);
}

/** In this order, moving none that stands right: what is moved loses its focus. */
function place(list, next) {
  const stays = new Set(next);
  for (const entry of [...list.children]) if (!stays.has(entry)) entry.remove();
  let before = list.firstElementChild;
  for (const entry of next) {
    if (entry === before) before = before.nextElementSibling;
    else list.insertBefore(entry, before);
  }
}

function entriesOf(id) {
  return [...document.getElementById(id).children];
}

function titleOf(entry) {
  return entry.querySelector('a')?.textContent ?? 'a run';
}

start();
