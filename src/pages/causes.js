// @ts-nocheck runs in the browser only: no DOM types here
// "Why?" of an event, in place: the chain of its causes as the server renders it, each a step to where the page shows it
// (seed 003 §1.2).
import { showTimes } from './browser.js';
import { timelineIn } from './run-log.js';

export function keepCauses() {
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a');
    // A new tab or window is the browser's own affair.
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    if (link.classList.contains('why')) {
      event.preventDefault();
      void toggleCauses(link);
    }
    const item = link.dataset.event && shownBy(link.dataset.event);
    if (item) {
      event.preventDefault();
      show(item);
    }
  });
}

async function toggleCauses(link) {
  const item = link.closest('.item');
  const shown = item.querySelector(':scope > .causes');
  if (shown) return shown.remove();
  const response = await fetch(link.href, { cache: 'no-store' }).catch(() => undefined);
  // The page of its own says what is wrong.
  if (!response?.ok) return void location.assign(link.href);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const causes = page.querySelector('.causes');
  item.querySelector(':scope > .causes')?.remove();
  item.append(causes);
  showTimes(causes);
}

/** The element of an event, in the page's list or in an open thread. */
function shownBy(eventId) {
  for (const list of document.querySelectorAll('ol.timeline')) {
    const item = timelineIn(list)?.shownBy.get(eventId);
    const element = item && document.getElementById(item.key);
    if (element) return element;
  }
  return undefined;
}

function show(item) {
  for (let at = item.parentElement.closest('details'); at; at = at.parentElement.closest('details'))
    at.open = true;
  for (const marked of document.querySelectorAll('.item.cause')) marked.classList.remove('cause');
  item.classList.add('cause');
  item.setAttribute('tabindex', '-1');
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: 'center' });
}
