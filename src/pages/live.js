// @ts-nocheck runs in the browser only: no DOM types here
// What the browser adds to the page: the live stream, threads, causes in place, local times and relative deadlines.
// Everything works without it, answering included. Served as it is, with the modules that it imports.
import { keepSlider } from './at.js';
import { announce, guardForms, keepTimes, setLive, showTimes, swap } from './browser.js';
import { keepCauses } from './causes.js';
import { isChanged } from './made-again.js';
import { followLog } from './run-log.js';
import { hasUnfollowed, keepThreads } from './threads.js';

/** How often the head is asked for while runs below are not followed: what they ask stands in it. */
const LOOK_MS = 15_000;

function start() {
  const list = document.getElementById('timeline');
  if (!list) return;
  keepTimes();
  guardForms();
  keepCauses();
  keepSlider();
  keepThreads(refreshHead);
  setInterval(() => hasUnfollowed() && refreshHead(), LOOK_MS);
  followLog(list, { told: setLive, onMove: refreshHead, isMain: true });
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
    swap('fork', fresh);
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

/** A question that is still open keeps its form, with what was typed; what it says of how things stand is taken anew. */
function mergeQuestions(fresh) {
  const box = document.getElementById('questions');
  const open = new Map([...box.children].map((card) => [card.dataset.interrupt, card]));
  const next = [...fresh.getElementById('questions').children];
  const asked = new Set(next.map((card) => card.dataset.interrupt));
  for (const card of open.values()) if (!asked.has(card.dataset.interrupt)) card.remove();
  next.forEach((card, at) => {
    const kept = open.get(card.dataset.interrupt);
    if (kept) refreshCard(kept, card);
    else announce(card.querySelector('h2')?.textContent || 'A question was asked');
    // A card that is moved loses the focus.
    if (box.children[at] !== (kept ?? card)) box.insertBefore(kept ?? card, box.children[at]);
  });
}

/** Votes, turns, questions back and what follows each answer, by their names. */
function refreshCard(card, fresh) {
  const parts = new Map(partsOf(fresh).map((part) => [part.dataset.live, part]));
  for (const part of partsOf(card)) {
    const next = parts.get(part.dataset.live);
    if (next && next.innerHTML !== part.innerHTML && !isHeld(part)) part.innerHTML = next.innerHTML;
  }
}

/**
 * What a form sends of how things were is that of when it was sent, so that a double click is one answer. What had been heard
 * is that of when it was filled in: the first click may have come before this script.
 */
function isHeld(part) {
  const form = part.closest('form');
  if (!form || !part.querySelector('input[type=hidden]')) return false;
  return (
    Boolean(form.dataset.sent) ||
    (part.querySelector('[name=heard]') && [...form.elements].some(isChanged))
  );
}

function partsOf(card) {
  return [...card.querySelectorAll('[data-live]')];
}

start();
