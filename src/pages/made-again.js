// @ts-nocheck runs in the browser only: no DOM types here
// What the page of a run does when it learns that the log it shows was made again (architecture §3.6): it is loaded again,
// once, and never over what a person has put into a form.

/** Loads the page again, or shows the link that does; its address asks for a notice that says why. */
export function loadAgain() {
  const line = document.getElementById('made-again');
  const { href } = line.querySelector('a');
  const loads = mayLoad({ from: location.href, to: href, forms: document.forms });
  if (loads) location.replace(href);
  else line.hidden = false;
}

/** False where the page was loaded for this reason already, so that it never goes round in a circle, or a form is in use. */
export function mayLoad({ from, to, forms }) {
  return noticeOf(from) !== noticeOf(to) && ![...forms].some(isInUse);
}

function noticeOf(url) {
  return new URL(url).searchParams.get('notice');
}

/** It holds what a person has put there, or is being sent. */
function isInUse({ dataset, elements }) {
  return dataset.sent !== undefined || [...elements].some(isChanged);
}

/** Of a field of a form: it does not hold what the HTML says. */
export function isChanged(field) {
  if (field.options) return field.selectedIndex !== renderedChoice([...field.options]);
  return (
    field.checked !== field.defaultChecked || field.value !== (field.defaultValue ?? field.value)
  );
}

/** Of a list to choose one from: without a choice in the HTML it is the first. */
function renderedChoice(options) {
  return Math.max(
    0,
    options.findLastIndex((option) => option.defaultSelected),
  );
}
