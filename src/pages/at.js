// @ts-nocheck runs in the browser only: no DOM types here
// The slider over the log, in place: the state at an event as the server renders it, and the entry that shows the event
// marked in the timeline. The newest place that was asked for is shown, and no more than one is asked for at a time.
import { showTimes } from './browser.js';
import { timelineIn } from './run-log.js';

export function keepSlider() {
  const slider = document.getElementById('at-event');
  if (!slider) return;
  let isAsking = false;
  const follow = () => {
    const { lastSequence = -1 } = timelineIn(document.getElementById('timeline')) ?? {};
    slider.max = Math.max(Number(slider.max), lastSequence);
  };
  const show = async () => {
    if (isAsking) return;
    isAsking = true;
    try {
      for (let shown; shown !== slider.value;) {
        shown = slider.value;
        await showAt(slider, shown);
      }
    } finally {
      isAsking = false;
    }
  };
  for (const name of ['focus', 'pointerdown', 'keydown']) slider.addEventListener(name, follow);
  slider.addEventListener('input', () => {
    document.getElementById('at-shown').textContent = slider.value;
    mark(Number(slider.value));
    void show();
  });
}

async function showAt(slider, event) {
  const url = new URL(slider.form.action);
  url.searchParams.set('event', event);
  const response = await fetch(url, { cache: 'no-store' }).catch(() => undefined);
  // The page of its own says what is wrong.
  if (!response) return;
  if (!response.ok) return void location.assign(url);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const fresh = page.getElementById('at-state');
  const place = document.getElementById('at-place');
  place.replaceChildren(fresh);
  showTimes(place);
}

/** The last entry that had begun by then. */
function mark(sequence) {
  const list = document.getElementById('timeline');
  for (const item of list.querySelectorAll('.item.at')) item.classList.remove('at');
  const items = timelineIn(list)?.items ?? [];
  const item = items.findLast((each) => each.sequence <= sequence);
  document.getElementById(item?.key)?.classList.add('at');
}
