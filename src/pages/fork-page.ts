// The page that forks a run from one of its events (replay.md): what each mode does, and what a branch goes by instead. One
// plain form without script; what was wrong stands at its field.
import type { JsonObject } from '../rules/json.ts';
import { FORK_CONTROLS, type ForkAgent, type ForkFault } from './fork-fields.ts';
import { renderDocument, renderHidden } from './layout.ts';
import { renderAsked, type AskedModel } from './question.ts';
import type { FormTexts } from './start-fields.ts';
import { escapeExact, escapeHtml, renderValue } from './timeline-html.js';

/** Who gave the answer that an event tells. */
export type Answerer = 'tool' | 'agent' | 'model' | 'human';

export interface ForkPageModel {
  readonly runId: string;
  /** Of its workflow. */
  readonly name: string;
  /** Entries that its log has. */
  readonly length: number;
  /** The event that the fork begins with; without a type it is behind the last. */
  readonly at: {
    readonly sequence: number;
    readonly type?: string;
    readonly nodeName?: string;
    readonly answerer?: Answerer;
    /** What the event has. */
    readonly answer?: unknown;
    /** What a human answered there. */
    readonly question?: AskedModel;
  };
  readonly agents: readonly ForkAgent[];
  /** As they may be shown. */
  readonly configurable: JsonObject;
  readonly inputs: JsonObject;
  /** What stands in the fields. */
  readonly form: FormTexts;
  readonly faults?: readonly ForkFault[];
  /** About the whole. */
  readonly notice?: string;
  /** Address that takes the form; it names this form, so that it makes one run. */
  readonly action: string;
  readonly csrfToken: string;
}

const { mode, answer, prompt, provider, model, configurable } = FORK_CONTROLS;
const { inputs, tools, answers, onDivergence } = FORK_CONTROLS;

const MODES = [
  [
    'branch',
    'Branch',
    'Lives on its own from here. What came before is taken over; models and tools are asked from here on, and their effects happen again.',
  ],
  [
    'replay',
    'Replay',
    'States again what the run stated, to its end. It performs nothing: no model, tool or human is asked.',
  ],
] as const;

const ANSWER_WORDS: Readonly<Record<Answerer, { label: string; hint: string }>> = {
  tool: {
    label: 'What the tool gives here',
    hint: 'JSON. Nothing is performed for it. Left empty, the tool is called again.',
  },
  agent: {
    label: 'What the agent gives here',
    hint: 'JSON, instead of the decision of its run, which performs nothing more. Left empty, that run goes on from where it was; one that had ended gives what it gave.',
  },
  model: {
    label: 'What the model says here',
    hint: 'As the model would say it, such as {"decision": {"refund": true}, "confidence": 0.9}. None is asked for it. Left empty, the model is asked again.',
  },
  human: {
    label: 'What is answered here',
    hint: 'JSON, such as {"action": "accept"}. It counts as your answer. Left empty, the question is asked again.',
  },
};

/** The page, as it is begun or with what was wrong. */
export function renderForkPage(shown: ForkPageModel): string {
  const { runId, name, at, faults = [] } = shown;
  const run = escapeHtml(`/pages/runs/${encodeURIComponent(runId)}`);
  const title = `Fork from event ${at.sequence}: ${name}`;
  const isWrong = faults.length > 0 || shown.notice !== undefined;
  return renderDocument({
    title: isWrong ? `Not forked: ${title}` : title,
    body: `<main class="start"><p class="back"><a href="${run}">← The run</a></p>
<h1>${escapeHtml(title)}</h1>
<p class="lead">${eventWords(shown)}</p>
${notices(shown)}
<form class="compare" method="get" action="${run}/fork"><label>From event <input name="from" required inputmode="numeric" value="${at.sequence}" autocomplete="off"></label><button>Go there</button></form>
${form(shown)}
</main>`,
  });
}

function eventWords({ at, length, runId }: ForkPageModel): string {
  const { type, nodeName } = at;
  const where = nodeName === undefined ? '' : ` of ${escapeHtml(nodeName)}`;
  const what =
    type === undefined
      ? 'Behind the last event'
      : `The first event that is its own takes the place of <code>${escapeHtml(type)}</code>${where}`;
  return `${what}. The log of <code>${escapeHtml(runId)}</code> has ${length} events, from 0 on.`;
}

function notices({ notice, faults = [] }: ForkPageModel): string {
  const whole = faults.filter(({ control }) => control === '').map(({ message }) => message);
  const texts = [...(notice === undefined ? [] : [notice]), ...whole];
  const other = faults.length > whole.length && notice === undefined ? [NOT_RIGHT] : [];
  return [...other, ...texts]
    .map((text) => `<p class="notice error" role="alert">${escapeHtml(text)}</p>`)
    .join('');
}

const NOT_RIGHT = 'The run was not forked: not all is right below.';

function form(shown: ForkPageModel): string {
  const { action, csrfToken, at } = shown;
  return `<form method="post" action="${escapeExact(action)}" class="start" novalidate><input type="hidden" name="csrf" value="${escapeExact(csrfToken)}">
${modes(shown)}
<fieldset class="overlay"><legend>What a branch goes by instead</legend>
${at.answerer ? answerField(shown, at.answerer) : ''}
${shown.agents.map((agent) => promptField(shown, agent)).join('\n')}
${toolsField(shown)}
${divergenceField(shown)}
${answersField(shown)}
${optionFields(shown)}
</fieldset>
<div class="send"><button class="primary">Fork the run</button></div></form>`;
}

function modes(shown: ForkPageModel): string {
  const chosen = shown.form[mode] ?? 'branch';
  const choices = MODES.map(
    ([value, label, words]) =>
      `<label class="mode"><input type="radio" name="${mode}" value="${value}"${value === chosen ? ' checked' : ''}> <b>${label}</b> <span class="hint">${words}</span></label>`,
  );
  return `<fieldset class="field${faultHtml(shown, { control: mode, id: 'mode' }) && ' wrong'}"><legend>Mode</legend>${faultHtml(shown, { control: mode, id: 'mode' })}${choices.join('')}</fieldset>`;
}

interface Field {
  readonly control: string;
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly look: 'json' | 'text' | 'line';
  /** What the source has. */
  readonly present?: unknown;
}

function answerField(shown: ForkPageModel, answerer: Answerer): string {
  const words = ANSWER_WORDS[answerer];
  const { question, answer: present } = shown.at;
  const asked = question ? renderAsked(question) : answerer === 'human' ? NOT_SHOWN : '';
  return `${asked}${field(shown, {
    ...{ control: answer, id: answer, look: 'json', present },
    ...words,
  })}`;
}

const NOT_SHOWN =
  '<p class="notice info">The question cannot be shown here. Read it in the log before you answer it.</p>';

function toolsField({ form: sent }: ForkPageModel): string {
  const checked = sent[tools] === 'recorded' ? ' checked' : '';
  return `<div class="field"><label class="mode"><input type="checkbox" name="${tools}" value="recorded"${checked}> <b>Tools as recorded</b> <span class="hint">A call gets what the same call got in the run, a child run comes to what the same one came to, and nothing is performed. One that the run has not made ends the fork.</span></label></div>`;
}

function divergenceField({ form: sent }: ForkPageModel): string {
  const checked = sent[onDivergence] === 'live' ? ' checked' : '';
  return `<div class="field"><label class="mode"><input type="checkbox" name="${onDivergence}" value="live"${checked}> <b>Go on where it differs</b> <span class="hint">Where the code of today states something else than the run did before this event, the branch lives from there. Otherwise that ends it.</span></label></div>`;
}

function answersField({ form: sent }: ForkPageModel): string {
  const checked = sent[answers] === 'recorded' ? ' checked' : '';
  return `<div class="field"><label class="mode"><input type="checkbox" name="${answers}" value="recorded"${checked}> <b>Answers as recorded</b> <span class="hint">A question that the run asked at the same place and in the same words gets what people answered there. Any other waits for people.</span></label></div>`;
}

function promptField(shown: ForkPageModel, { agentId }: ForkAgent): string {
  const at = shown.agents.findIndex((each) => each.agentId === agentId);
  const hint = 'Left as it is, or empty, the prompt stays.';
  const control = prompt + agentId;
  return field(shown, {
    ...{ control, id: `prompt${at}`, label: `Prompt of ${agentId}`, hint, look: 'text' },
  });
}

function optionFields(shown: ForkPageModel): string {
  const same = 'Left empty, it is chosen as before.';
  const variables: Field = {
    ...{ control: inputs, id: inputs, label: 'Inputs', look: 'json', present: shown.inputs },
    hint: 'JSON object of those that are others.',
  };
  const fields: readonly Field[] = [
    { control: provider, id: provider, label: 'Provider of models', hint: same, look: 'line' },
    { control: model, id: model, label: 'Model', hint: same, look: 'line' },
    {
      ...{ control: configurable, id: configurable, label: 'Configurable', look: 'json' },
      ...{ hint: 'JSON object of what is other.', present: shown.configurable },
    },
    ...(shown.at.sequence === 0 ? [variables] : []),
  ];
  return fields.map((each) => field(shown, each)).join('\n');
}

function field(shown: ForkPageModel, { control, id, label, hint, look, present }: Field): string {
  const text = shown.form[control] ?? '';
  const told = faultHtml(shown, { control, id, label });
  const facts = `id="${id}" name="${escapeExact(control)}" aria-describedby="${id}-hint${told && ` ${id}-fault`}"${told && ' aria-invalid="true"'} autocomplete="off"`;
  return `<div class="field${told && ' wrong'}">
<label for="${id}">${escapeHtml(label)} <span class="type">optional</span></label>
<p class="hint" id="${id}-hint">${escapeHtml(hint)}</p>
${told}
${look === 'line' ? `<input ${facts} value="${escapeExact(text)}">` : area(facts, text, look)}${renderHidden(text)}
${presentHtml(present)}</div>`;
}

function area(facts: string, text: string, look: 'json' | 'text'): string {
  const rows = Math.min(14, Math.max(3, text.split('\n').length + 1));
  const json = look === 'json' ? ' class="json" spellcheck="false"' : '';
  // The first line break in a text area is none of its text.
  return `<textarea ${facts} rows="${rows}"${json}>\n${escapeExact(text)}</textarea>`;
}

function presentHtml(present: unknown): string {
  if (present === undefined || present === null) return '';
  if (typeof present === 'object' && Object.keys(present).length === 0) return '';
  return `<details><summary>What the run had</summary>${renderValue(present)}</details>`;
}

function faultHtml(
  { faults = [] }: ForkPageModel,
  { control, id, label = 'The mode' }: { control: string; id: string; label?: string },
): string {
  const own = faults.filter((each) => each.control === control);
  const words = own.map(({ message }) => escapeHtml(`${label} ${message}`)).join('<br>');
  return words && `<p class="fault" id="${id}-fault">${words}</p>`;
}
