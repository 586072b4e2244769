// The page that starts a run: a form made of what the workflow declares, one field for each variable. One plain form
// without script; what was wrong stands at its field and, with links to the fields, on top.
import { renderDocument, renderHidden } from './layout.ts';
import {
  DEFAULT_CHARACTERS,
  emptyControl,
  emptyMeanings,
  MAX_START_FIELDS,
  TAGS_CONTROL,
  TAGS_POINTER,
  textOf,
  type FormTexts,
  type InputFault,
  type StartField,
} from './start-fields.ts';
import { escapeExact, escapeHtml, renderValue } from './timeline-html.js';

export interface StartPageModel {
  /** Of the workflow or the agent. */
  readonly name: string;
  readonly kind: 'workflow' | 'agent';
  readonly description?: string;
  readonly fields: readonly StartField[];
  /** What stands in the fields. Of sensitive ones nothing is shown. */
  readonly form: FormTexts;
  /** Of what was sent. */
  readonly faults?: readonly InputFault[];
  /** Labels of fields whose value in the earlier run is not known any more. */
  readonly withheld?: readonly string[];
  /** It may be a rehearsal: whether that is chosen. */
  readonly rehearsal?: { readonly isChosen: boolean };
  /** About the whole, with the run that it is about. */
  readonly notice?: {
    readonly kind: 'info' | 'error';
    readonly text: string;
    readonly runUrl?: string;
  };
  /** Address that takes the form; it names this form, so that it starts one run. */
  readonly action: string;
  readonly csrfToken: string;
  readonly homeUrl: string;
}

const TYPE_WORDS: Readonly<Record<StartField['type'], string>> = {
  string: 'text',
  number: 'number',
  boolean: 'yes or no',
  object: 'JSON object',
  array: 'JSON list',
};
const INPUT_MODES: Readonly<Record<string, string>> = { email: 'email', uri: 'url', url: 'url' };
/** Formats whose values have lines. */
const LONG_FORMATS = new Set(['text', 'textarea', 'multiline', 'markdown']);
/** Texts longer than this (characters) get a text area instead of a line. */
const LINE_CHARACTERS = 80;
const TAGS_ID = 'tags';

/** The page, empty or with what was wrong. */
export function renderStartPage(model: StartPageModel): string {
  const { name, description, fields, faults = [] } = model;
  const title = `Start a run: ${name}`;
  const what = description ? `<p class="lead">${escapeHtml(description)}</p>` : '';
  return renderDocument({
    title: faults.length > 0 ? `Not started: ${title}` : title,
    body: `<main class="start"><p class="back"><a href="${escapeExact(model.homeUrl)}">← All runs</a></p>
<h1>${escapeHtml(title)}</h1>
${what}
${notice(model)}${summary(model)}
${fields.length > MAX_START_FIELDS ? tooMany(model) : form(model)}
</main>`,
  });
}

function notice({ notice: told }: StartPageModel): string {
  if (!told) return '';
  const role = told.kind === 'error' ? 'alert' : 'status';
  const link = told.runUrl ? ` <a href="${escapeExact(told.runUrl)}">Open the run</a>` : '';
  return `<p class="notice ${told.kind}" role="${role}">${escapeHtml(told.text)}${link}</p>`;
}

/** All faults on top, each with a link to its field; a screen reader begins here. */
function summary({ faults = [], fields }: StartPageModel): string {
  if (faults.length === 0) return '';
  const items = faults.map((found) => {
    const at = placeOf(fields, found);
    const words = escapeHtml(sentence(fields, found));
    return `<li>${at === undefined ? words : `<a href="#${at}">${words}</a>`}</li>`;
  });
  const head =
    faults.length === 1
      ? 'The run was not started: one thing is not right.'
      : `The run was not started: ${faults.length} things are not right.`;
  return `<section class="notice error faults" role="alert" tabindex="-1" autofocus aria-labelledby="faults"><h2 id="faults">${head}</h2><ul>${items.join('')}</ul></section>`;
}

function isAbout({ pointer }: InputFault, at: string): boolean {
  return pointer === at || pointer.startsWith(`${at}/`);
}

/** Id of the control that a fault is about. */
function placeOf(fields: readonly StartField[], found: InputFault): string | undefined {
  if (isAbout(found, TAGS_POINTER)) return TAGS_ID;
  const index = fields.findIndex(({ pointer }) => isAbout(found, pointer));
  return index === -1 ? undefined : `f${index}`;
}

/** A fault that no field has is told with its place in the request. */
function sentence(fields: readonly StartField[], found: InputFault): string {
  const { pointer, message } = found;
  if (isAbout(found, TAGS_POINTER)) return `A tag ${message}`;
  const field = fields.find((each) => isAbout(found, each.pointer));
  if (!field) return `${pointer} ${message}`.trim();
  const inside = pointer.slice(field.pointer.length);
  return `${field.label}${inside && `, at ${inside},`} ${message}`;
}

function tooMany({ fields }: StartPageModel): string {
  return `<p class="notice">This takes ${fields.length} inputs, more than a form is good for. Start it by the API: <code>POST /v1/runs</code>.</p>`;
}

function form(model: StartPageModel): string {
  const { fields, csrfToken, action, kind } = model;
  const inputs =
    fields.length === 0
      ? `<p class="lead">This ${kind} takes no inputs.</p>`
      : fields.map((field, index) => renderField(model, { field, index })).join('\n');
  return `<form method="post" action="${escapeExact(action)}" class="start" novalidate><input type="hidden" name="csrf" value="${escapeExact(csrfToken)}">
${inputs}
${tags(model)}${rehearsal(model)}
<div class="send"><button class="primary">Start the run</button></div></form>`;
}

function tags({ form: sent, faults = [] }: StartPageModel): string {
  const found = faults.find((each) => isAbout(each, TAGS_POINTER));
  const text = sent[TAGS_CONTROL] ?? '';
  const wrong = found ? ' aria-invalid="true"' : '';
  const told = found
    ? `<p class="fault" id="tags-fault">A tag ${escapeHtml(found.message)}</p>`
    : '';
  return `<details class="more"${text || found ? ' open' : ''}><summary>Tags of the run</summary><div class="field${found ? ' wrong' : ''}"><label for="${TAGS_ID}">Tags <span class="type">optional</span></label><p class="hint" id="tags-hint">Words that the run is marked with, separated by commas.</p>${told}<input id="${TAGS_ID}" name="${TAGS_CONTROL}" value="${escapeExact(text)}" autocomplete="off" aria-describedby="tags-hint${found ? ' tags-fault' : ''}"${wrong}></div></details>`;
}

export const REHEARSAL_CONTROL = 'rehearsal';

function rehearsal({ rehearsal: offered }: StartPageModel): string {
  if (!offered) return '';
  const checked = offered.isChosen ? ' checked' : '';
  return `<div class="field"><label><input type="checkbox" name="${REHEARSAL_CONTROL}" value="yes" aria-describedby="rehearsal-hint"${checked}> As a rehearsal</label><p class="hint" id="rehearsal-hint">Its clock stands until you skip time on its page, and nothing outside is changed.</p></div>`;
}

interface Placed {
  readonly field: StartField;
  readonly index: number;
}

function renderField(model: StartPageModel, placed: Placed): string {
  const { field, index } = placed;
  const { label, type, description } = field;
  const found = (model.faults ?? []).filter((each) => isAbout(each, field.pointer));
  const { format = '' } = field;
  const facts = [TYPE_WORDS[type], ...(format && !LONG_FORMATS.has(format) ? [format] : [])];
  const must = isRequired(field) ? '<b>required</b>' : 'optional';
  const told = found.map((each) => escapeHtml(sentence(model.fields, each))).join('<br>');
  return `<div class="field${told && ' wrong'}">
<label for="f${index}">${escapeHtml(label)} <span class="type">${escapeHtml(facts.join(', '))} · ${must}</span></label>
${description ? `<p class="about" id="f${index}-about">${escapeHtml(description)}</p>` : ''}
<p class="hint" id="f${index}-hint">${escapeHtml(hint(model, field))}</p>
${told && `<p class="fault" id="f${index}-fault">${told}</p>`}
${control(model, placed, told !== '')}${field.sensitive ? '' : renderHidden(model.form[field.control] ?? '')}
${longDefault(field)}${emptyChoice(model, placed, told !== '')}</div>`;
}

function isRequired(field: StartField): boolean {
  return field.required && !hasDefault(field);
}

function hasDefault({ defaultValue }: StartField): boolean {
  return defaultValue !== undefined && defaultValue !== null;
}

/** What leaving it empty means, and what else a person cannot see. */
function hint(model: StartPageModel, field: StartField): string {
  const { form: sent, faults = [], withheld = [], notice: told } = model;
  const { type, sensitive, required, label } = field;
  const words: string[] = [];
  if (withheld.includes(label))
    words.push('The other run does not show this value: give it again.');
  else if (sensitive && (faults.length > 0 || told?.kind === 'error') && sent[field.control])
    words.push('This is not shown back: type it again.');
  else if (sensitive) words.push('Kept from view, here and on the page of the run.');
  if (hasDefault(field) && type !== 'boolean') words.push(defaultWords(field));
  else if (!required && type !== 'boolean') words.push('Left empty, it is not given.');
  if (type === 'object') words.push('Such as {"key": "value"}.');
  if (type === 'array') words.push('Such as ["one", "two"].');
  return words.join(' ');
}

/** A short one is named: who has changed the field sees what it was. */
function defaultWords({ defaultValue = null, sensitive }: StartField): string {
  if (sensitive) return 'Left empty, the default is used; it is not shown.';
  const text = JSON.stringify(defaultValue);
  return text.length <= LINE_CHARACTERS
    ? `Left empty, the default is used: ${text}`
    : 'Left empty, the default is used.';
}

function control(model: StartPageModel, { field, index }: Placed, isWrong: boolean): string {
  const { type, sensitive, format = '' } = field;
  const text = sensitive ? '' : (model.form[field.control] ?? '');
  const told = [
    ...(field.description ? [`f${index}-about`] : []),
    `f${index}-hint`,
    ...(isWrong ? [`f${index}-fault`] : []),
  ];
  const must = isRequired(field);
  const facts = `id="f${index}" name="${escapeExact(field.control)}" aria-describedby="${told.join(' ')}"${must ? ' aria-required="true"' : ''}${isWrong ? ' aria-invalid="true"' : ''}`;
  if (type === 'boolean') return `<select ${facts}>${yesOrNo(field, text)}</select>`;
  if (sensitive) return `<input type="password" ${facts} autocomplete="new-password">`;
  const isJson = type === 'object' || type === 'array';
  if (isJson || (type === 'string' && isLong(text, format))) return area(facts, text, isJson);
  const mode = type === 'number' ? 'decimal' : INPUT_MODES[format];
  return `<input ${facts} value="${escapeExact(text)}"${mode ? ` inputmode="${mode}"` : ''} autocomplete="off">`;
}

function isLong(text: string, format: string): boolean {
  return LONG_FORMATS.has(format) || text.length > LINE_CHARACTERS || text.includes('\n');
}

function area(facts: string, text: string, isJson: boolean): string {
  const rows = Math.min(14, Math.max(3, text.split('\n').length + 1));
  const look = isJson ? ' class="json" spellcheck="false"' : '';
  // The first line break in a text area is none of its text.
  return `<textarea ${facts} rows="${rows}"${look} autocomplete="off">\n${escapeExact(text)}</textarea>`;
}

/** That nothing is said is another answer than no. */
function yesOrNo(field: StartField, text: string): string {
  const { defaultValue, sensitive, required } = field;
  const preset = sensitive
    ? 'the default'
    : `the default (${defaultValue === true ? 'yes' : 'no'})`;
  const options = [
    ['', hasDefault(field) ? preset : required ? 'choose…' : 'not given'],
    ['true', 'yes'],
    ['false', 'no'],
    ...(required ? [] : [['null', EMPTY_WORDS.null]]),
  ];
  return options
    .map(
      ([value, words]) =>
        `<option value="${value}"${value === text ? ' selected' : ''}>${words}</option>`,
    )
    .join('');
}

function longDefault({ defaultValue, sensitive, label }: StartField): string {
  if (defaultValue === undefined || sensitive) return '';
  const { length } = textOf(defaultValue);
  if (length <= DEFAULT_CHARACTERS) return '';
  return `<details class="default"><summary>The default, ${length.toLocaleString('en')} characters</summary><div role="region" aria-label="The default of ${escapeHtml(label)}" tabindex="0">${renderValue(defaultValue)}</div></details>`;
}

const EMPTY_WORDS = { text: 'an empty text', null: 'null (given, and empty)' };

/** A required field is to be filled: only who has left one empty is asked whether that was meant. */
function emptyChoice(
  { form: sent }: StartPageModel,
  { field, index }: Placed,
  isWrong: boolean,
): string {
  const meanings = emptyMeanings(field);
  if (meanings.length === 0) return '';
  const name = emptyControl(field);
  const chosen = sent[name];
  const isChosen = meanings.some((meaning) => meaning === chosen);
  if (isRequired(field) && !isWrong && !isChosen) return '';
  const options = meanings.map(
    (meaning) =>
      `<option value="${meaning}"${meaning === chosen ? ' selected' : ''}>${EMPTY_WORDS[meaning]}</option>`,
  );
  const nothing = hasDefault(field) ? 'the default' : 'nothing: it is not given';
  return `<details class="empty"${isChosen ? ' open' : ''}><summary>Empty on purpose?<span class="unseen"> ${escapeHtml(field.label)}</span></summary><label for="f${index}-empty">If the field is empty, the run gets</label><select id="f${index}-empty" name="${escapeExact(name)}"><option value="">${nothing}</option>${options.join('')}</select></details>`;
}
