// The question a run asks, as a card with one plain form per answer (interrupt.md). One form each, because Enter in a
// text field submits the first button of its form: a field for a reason must never accept something.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import { wordsOf } from '../words/choices.ts';
import {
  editableOf,
  formShapeOf,
  headOf,
  outcomeSchemaOf,
  questionsOf,
  turnsOf,
  type OpenQuestion,
  type Question,
} from '../words/question.ts';
import { renderDate, renderLeft } from './layout.ts';
import {
  escapeHtml,
  isFlatObject,
  renderConfidence,
  renderValue,
  SCROLLS,
} from './timeline-html.js';

export interface QuestionModel {
  readonly interrupt: OpenQuestion;
  readonly csrfToken: string;
  /** Address that takes the answer. */
  readonly answerUrl: string;
  readonly nowMs: number;
  /** Its deadline is by the rehearsal's clock. */
  readonly isRehearsal?: boolean;
  /** Names nodes and says what follows. */
  readonly definition?: WorkflowDefinition;
  /** The agent's last reasoning at this node. */
  readonly reasoning?: string;
}

/** Texts longer than this (characters) get a text area instead of a line. */
const LINE_CHARACTERS = 80;

/** One card: what is asked, why, what follows, until when, and the answers. */
export function renderQuestion(model: QuestionModel): string {
  const { interrupt, definition } = model;
  const node = definition?.nodes.find(({ id }) => id === interrupt.nodeId);
  const { title, lead } = headOf(interrupt, node?.name ?? interrupt.nodeId);
  return `<section class="card question" data-interrupt="${escapeHtml(interrupt.interruptId)}" aria-labelledby="q-${escapeHtml(interrupt.interruptId)}">
<h2 id="q-${escapeHtml(interrupt.interruptId)}">${escapeHtml(title)}</h2>
<p class="lead">${escapeHtml(lead)}</p>
${deadline(model)}
${subject(interrupt)}
${why(model.reasoning)}
${forms(model)}
</section>`;
}

/** What a run below asks. */
export interface QuestionBelow {
  readonly runId: string;
  readonly workflowId: string;
  readonly interrupt: OpenQuestion;
}

/** A card that leads to where it is answered. */
export function renderQuestionBelow({ runId, workflowId, interrupt }: QuestionBelow): string {
  const id = escapeHtml(interrupt.interruptId);
  const { title, lead } = headOf(interrupt, interrupt.nodeId);
  return `<section class="card question" data-interrupt="${id}" aria-labelledby="q-${id}">
<h2 id="q-${id}">${escapeHtml(title)}</h2>
<p class="lead">${escapeHtml(lead)}</p>
${subject(interrupt)}
<p><a href="/pages/runs/${encodeURIComponent(runId)}">Answer on its page</a> <span class="facts">a run of ${escapeHtml(workflowId)} asks, which this one waits for</span></p>
</section>`;
}

function deadline({ interrupt, nowMs, isRehearsal = false }: QuestionModel): string {
  const asked = `asked ${renderDate(interrupt.requestedAtMs)}`;
  const { deadlineMs } = interrupt;
  if (deadlineMs === undefined) return `<p class="deadline">No time limit · ${asked}</p>`;
  // What is left stands with the clock: this card stays as it is while that moves.
  if (isRehearsal)
    return `<p class="deadline">Answer until <b>${renderDate(deadlineMs)}</b> by the clock of the rehearsal · ${asked}</p>`;
  return `<p class="deadline">Answer until <b>${renderDate(deadlineMs)}</b> · ${renderLeft(deadlineMs, nowMs)} · ${asked}</p>`;
}

/** What is to be judged. */
function subject({ data, ...interrupt }: OpenQuestion): string {
  const number = (value: JsonValue | undefined) => (typeof value === 'number' ? value : undefined);
  switch (formShapeOf({ ...interrupt, data })) {
    case 'low-confidence':
      return `${renderValue(data.decision)}${renderConfidence(number(data.observed), number(data.threshold))}`;
    case 'tool-call':
      return renderValue((data.artifactData as JsonObject | undefined)?.arguments);
    case 'approval':
    case 'effect':
      return data.artifactData === undefined ? '' : renderValue(data.artifactData);
    case 'none':
      return renderValue(data.correlation ?? data.payload);
    case 'clarification':
      return '';
    case 'talk':
      return renderTurns(data);
  }
}

function renderTurns(data: JsonObject): string {
  const turns = turnsOf(data).map(
    ({ who, content }) =>
      `<li><b>${escapeHtml(who)}</b>${typeof content === 'string' ? `<p>${escapeHtml(content)}</p>` : renderValue(content)}</li>`,
  );
  return turns.length === 0 ? '' : `<ol class="turns">${turns.join('')}</ol>`;
}

/** A turn more, or the end: two forms, so that Enter in the one never does the other. */
function talk(model: QuestionModel): string {
  const { interrupt } = model;
  const close = wordsOf(interrupt, 'close');
  const outcome = outcomeSchemaOf(interrupt.data)
    ? area({ name: 'editedDecision', label: 'The outcome', required: true })
    : '';
  return [
    form(
      model,
      'say',
      `${seenTurn(interrupt)}${area({ name: 'reason', label: 'What you say', required: true })}${button('Send', 'primary')}`,
    ),
    fold(
      close,
      form(
        model,
        'close',
        `${outcome}${area({ name: 'reason', label: 'A last word (optional)' })}${button(close)}${nextSteps(model)}`,
      ),
    ),
  ].join('');
}

/** The place that a turn is said at: a double click says it once. */
function seenTurn({ data: { turnIndex } }: OpenQuestion): string {
  return typeof turnIndex === 'number' ? hidden('turnIndex', String(turnIndex)) : '';
}

function why(reasoning: string | undefined): string {
  if (!reasoning) return '';
  return `<details class="why" open><summary>Why the agent thinks so</summary><blockquote ${SCROLLS} aria-label="What the agent thought">${escapeHtml(reasoning)}</blockquote></details>`;
}

function forms(model: QuestionModel): string {
  const { interrupt } = model;
  const actions = Array.isArray(interrupt.data.actions) ? interrupt.data.actions : undefined;
  const offers = (action: string) => actions === undefined || actions.includes(action);
  switch (formShapeOf(interrupt)) {
    case 'none':
      return '';
    case 'clarification':
      return form(
        model,
        'answer',
        `${questionsOf(interrupt.data).map(questionField).join('')}${button('Send the answer', 'primary')}`,
      );
    case 'talk':
      return talk(model);
    case 'effect':
      return [
        accept(model),
        edit(model, { what: 'What came of it', send: 'Record this outcome' }),
        reject(model),
      ].join('');
    case 'tool-call':
      return [accept(model), reject(model)].join('');
    case 'low-confidence':
      return [
        accept(model),
        reject(model),
        edit(model, { what: 'The decision', send: 'Accept with changes' }),
        fold(
          wordsOf(interrupt, 'answers'),
          form(
            model,
            'answer',
            `${questionsOf(interrupt.data).map(questionField).join('')}${button('Send, and let it decide again')}`,
          ),
        ),
      ].join('');
    case 'approval':
      return [
        offers('accept') ? accept(model) : '',
        offers('edit-accept') || offers('edit')
          ? edit(model, { what: 'The content', send: 'Accept with changes' })
          : '',
        offers('refine')
          ? fold(
              wordsOf(interrupt, 'refine'),
              form(
                model,
                'refine',
                `${area({ name: 'reason', label: 'What should change', required: true })}${button('Send back')}`,
              ),
            )
          : '',
        offers('reject') ? reject(model) : '',
      ].join('');
  }
}

function form(
  { interrupt, csrfToken, answerUrl }: QuestionModel,
  action: string,
  inside: string,
): string {
  return `<form method="post" action="${escapeHtml(answerUrl)}" class="${action}">${hidden('csrf', csrfToken)}${hidden('interruptId', interrupt.interruptId)}${hidden('action', action)}${inside}</form>`;
}

function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}

function accept(model: QuestionModel): string {
  const label = wordsOf(model.interrupt, 'accept');
  return form(model, 'accept', `${button(label, 'primary')}${nextSteps(model)}`);
}

function reject(model: QuestionModel): string {
  const label = wordsOf(model.interrupt, 'reject');
  return fold(
    label,
    form(
      model,
      'reject',
      `${area({ name: 'reason', label: 'Reason (optional)' })}${button(label, 'danger')}`,
    ),
  );
}

interface EditWords {
  /** Names the value that is changed. */
  readonly what: string;
  readonly send: string;
}

function edit(model: QuestionModel, { what, send }: EditWords): string {
  const value = editableOf(model.interrupt);
  const fields = isFlatObject(value)
    ? Object.entries(value)
        .map(([name, part]) => memberField(name, part))
        .join('')
    : area({
        name: 'editedDecision',
        label: `${what} (JSON)`,
        value: JSON.stringify(value, null, 2),
        required: true,
      });
  const summary = wordsOf(model.interrupt, 'edit-accept');
  return fold(summary, form(model, 'edit-accept', `${fields}${button(send)}`));
}

function fold(summary: string, inside: string): string {
  return `<details class="choice"><summary>${escapeHtml(summary)}</summary>${inside}</details>`;
}

function button(label: string, look = ''): string {
  return `<button class="${look}">${escapeHtml(label)}</button>`;
}

function memberField(name: string, value: string | number | boolean | null): string {
  if (typeof value === 'boolean')
    return choice(`field.${name}`, {
      label: name,
      options: ['true', 'false'],
      selected: String(value),
    });
  const text = value === null ? '' : String(value);
  if (text.length > LINE_CHARACTERS)
    return area({ name: `field.${name}`, label: name, value: text });
  const mode = typeof value === 'number' ? ' inputmode="decimal"' : '';
  return `<label>${escapeHtml(name)}<input name="field.${escapeHtml(name)}" value="${escapeHtml(text)}"${mode} autocomplete="off"></label>`;
}

interface Area {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly required?: boolean;
}

function area({ name, label, value = '', required }: Area): string {
  const rows = Math.min(12, Math.max(3, value.split('\n').length + 1));
  return `<label>${escapeHtml(label)}<textarea name="${escapeHtml(name)}" rows="${rows}"${required ? ' required' : ''}>${escapeHtml(value)}</textarea></label>`;
}

interface Choice {
  readonly label: string;
  readonly options: readonly string[];
  readonly selected: string;
}

function choice(name: string, { label, options, selected }: Choice): string {
  const items = options.map(
    (option) => `<option${option === selected ? ' selected' : ''}>${escapeHtml(option)}</option>`,
  );
  return `<label>${escapeHtml(label)}<select name="${escapeHtml(name)}" required>${items.join('')}</select></label>`;
}

function questionField({ id, question, schema }: Question): string {
  const name = `answer.${id}`;
  if (schema?.type === 'boolean')
    return choice(name, { label: question, options: ['', 'true', 'false'], selected: '' });
  const options = enumOf(schema);
  return options
    ? choice(name, { label: question, options: ['', ...options], selected: '' })
    : area({ name, label: question, required: true });
}

function enumOf(schema: JsonObject | undefined): string[] | undefined {
  return Array.isArray(schema?.enum) ? schema.enum.map(String) : undefined;
}

/** What follows a yes, in words: the definition's next nodes; after a tool's call the agent itself goes on. */
function nextSteps({ definition, interrupt }: QuestionModel): string {
  if (formShapeOf(interrupt) === 'tool-call')
    return '<div class="next"><span>Then:</span> the agent goes on with the result.</div>';
  const steps = (definition?.edges ?? [])
    .filter((edge) => edge.sourceNodeId === interrupt.nodeId)
    .map((edge) => {
      const name =
        definition?.nodes.find((node) => node.id === edge.targetNodeId)?.name ?? edge.targetNodeId;
      return `<li><b>${escapeHtml(name)}</b>${edge.condition ? ` ${escapeHtml(conditionWords(edge.condition))}` : ''}</li>`;
    });
  return steps.length === 0
    ? ''
    : `<div class="next"><span>Then:</span><ul>${steps.join('')}</ul></div>`;
}

const OPERATORS: Record<string, string> = {
  equals: 'is',
  notEquals: 'is not',
  contains: 'contains',
  regex: 'matches',
  truthy: 'is set',
  falsy: 'is not set',
};

function conditionWords(
  condition: NonNullable<WorkflowDefinition['edges'][number]['condition']>,
): string {
  const left = (condition.left ?? '').replace(/^outputs\.(decision\.)?/, '');
  const right =
    condition.right === undefined
      ? ''
      : ` ${typeof condition.right === 'string' ? condition.right : JSON.stringify(condition.right)}`;
  return condition.type === 'expression'
    ? 'on a condition'
    : `if ${left} ${OPERATORS[condition.type]}${right}`;
}
