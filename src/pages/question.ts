// The question a run asks, as a card with one plain form per answer (interrupt.md). One form each, because Enter in a
// text field submits the first button of its form: a field for a reason must never accept something.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { Unreadable } from '../rules/unreadable.ts';
import { unreadableText } from '../words/unreadable.ts';
import { choicesOf, fillInOf, type Choice } from '../words/choices.ts';
import { hidesAPart, printableAlone } from '../words/printable.js';
import { followsOf, type FollowingStep, type Follows, type Standing } from '../words/follows.ts';
import {
  askedBackOf,
  changeTextOf,
  editableOf,
  formShapeOf,
  headOf,
  outcomeSchemaOf,
  questionsOf,
  silenceWords,
  tooLargeWords,
  turnsOf,
  type OpenQuestion,
  type Question,
} from '../words/question.ts';
import {
  heardOf,
  tallyWords,
  votedAnswers,
  voteLines,
  votesOf,
  type VotedAnswer,
} from '../words/votes.ts';
import { renderDate, renderLeft } from './layout.ts';
import {
  escapeExact,
  escapeHtml,
  escapeValue,
  isFlatObject,
  renderConfidence,
  renderWhole,
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
  readonly standing?: Standing;
  /** Who reads it: what an answer does may depend on what they have voted before. */
  readonly viewer?: string;
  /** The agent's last reasoning at this node. */
  readonly reasoning?: string;
}

interface AnswerModel extends QuestionModel {
  readonly choice: Choice;
  /** HTML id of what says what follows. */
  readonly thenId: string;
}

/** Texts longer than this (characters) get a text area instead of a line. */
const LINE_CHARACTERS = 80;

/**
 * One card: what is asked, why, what follows, until when, and the answers. The script of an open page takes the parts with
 * `data-live` from a later rendering, each by its name; the rest stays with what was typed there.
 */
export function renderQuestion(model: QuestionModel): string {
  const { interrupt, standing } = model;
  const node = standing?.definition.nodes.find(({ id }) => id === interrupt.nodeId);
  const { title, lead } = headOf(interrupt, node?.name ?? interrupt.nodeId);
  return `<section class="card question" data-interrupt="${escapeExact(interrupt.interruptId)}" aria-labelledby="q-${escapeExact(interrupt.interruptId)}">
<h2 id="q-${escapeExact(interrupt.interruptId)}">${escapeValue(title)}</h2>
<p class="lead">${escapeValue(lead)}</p>
${deadline(model)}
${subject(interrupt)}
${soFar(model)}
${why(model.reasoning)}
${forms(model)}
</section>`;
}

export interface AskedModel {
  readonly interrupt: OpenQuestion;
  readonly standing: Standing;
}

/** The same without forms, for who answers in another way: what is asked, and of each answer how it is written and what follows. */
export function renderAsked({ interrupt, standing }: AskedModel): string {
  const { nodeId, data } = interrupt;
  const node = standing.definition.nodes.find(({ id }) => id === nodeId);
  const { title, lead } = headOf(interrupt, node?.name ?? nodeId);
  const choices = choicesOf(interrupt);
  const hasQuestions = choices.some((choice) => fillInOf(interrupt, choice) === 'answers');
  const questions = (hasQuestions ? questionsOf(data) : []).map(
    ({ id, question }) => `<li>${escapeValue(question)} <code>${escapeHtml(id)}</code></li>`,
  );
  const answers = choices.map((choice) => {
    const written = writtenAs(interrupt, choice);
    const code = written === undefined ? '' : ` <code>${escapeHtml(written)}</code>`;
    return `<li><b>${escapeHtml(choice.label)}</b>${code}<div class="next"><span>Then:</span> ${followsHtml(followsOf(interrupt, choice, standing))}</div></li>`;
  });
  return `<section class="card question" aria-labelledby="asked"><h2 id="asked">${escapeValue(title)}</h2>
<p class="lead">${escapeValue(lead)}</p>
${subject(interrupt)}
${questions.length === 0 ? '' : `<ul>${questions.join('')}</ul>`}
${soFar({ interrupt, standing })}
<ul aria-label="Answers">${answers.join('')}</ul></section>`;
}

/** An answer that needs no more than its name. */
function writtenAs(interrupt: OpenQuestion, choice: Choice): string | undefined {
  const filled = fillInOf(interrupt, choice);
  const isWhole = filled === 'nothing' || filled === 'reason';
  return isWhole ? JSON.stringify({ action: choice.action }) : undefined;
}

/** What a run below asks, or why nobody can tell what it asks. */
export type QuestionBelow = {
  readonly runId: string;
  readonly workflowId: string;
} & ({ readonly interrupt: OpenQuestion } | { readonly unreadable: Unreadable });

/** A card that leads to where it is answered. */
export function renderQuestionBelow(below: QuestionBelow): string {
  const { runId, workflowId } = below;
  if ('unreadable' in below)
    return `<section class="card question" data-interrupt="${escapeExact(runId)}"><h2>A run below may ask</h2>
<p class="lead">${escapeHtml(unreadableText(below.unreadable))}</p>
<p><span class="facts">a run of ${escapeHtml(workflowId)}: <code>${escapeHtml(runId)}</code></span></p>
</section>`;
  const { interrupt } = below;
  const id = escapeExact(interrupt.interruptId);
  const { title, lead } = headOf(interrupt, interrupt.nodeId);
  return `<section class="card question" data-interrupt="${id}" aria-labelledby="q-${id}">
<h2 id="q-${id}">${escapeValue(title)}</h2>
<p class="lead">${escapeValue(lead)}</p>
${subject(interrupt)}
<p><a href="/pages/runs/${encodeURIComponent(runId)}">Answer on its page</a> <span class="facts">a run of ${escapeHtml(workflowId)} asks, which this one waits for</span></p>
</section>`;
}

function deadline({ interrupt, nowMs, isRehearsal = false }: QuestionModel): string {
  const asked = `asked ${renderDate(interrupt.requestedAtMs)}`;
  const { deadlineMs } = interrupt;
  if (deadlineMs === undefined) return `<p class="deadline">No time limit · ${asked}</p>`;
  const silence = escapeHtml(silenceWords(interrupt));
  // What is left stands with the clock: this card stays as it is while that moves.
  if (isRehearsal)
    return `<p class="deadline">Answer until <b>${renderDate(deadlineMs)}</b> by the clock of the rehearsal · ${asked}<br>${silence}</p>`;
  return `<p class="deadline">Answer until <b>${renderDate(deadlineMs)}</b> · ${renderLeft(deadlineMs, nowMs)} · ${asked}<br>${silence}</p>`;
}

/** What is to be judged. */
function subject({ data, ...interrupt }: OpenQuestion): string {
  const number = (value: JsonValue | undefined) => (typeof value === 'number' ? value : undefined);
  switch (formShapeOf({ ...interrupt, data })) {
    case 'low-confidence':
      return `${renderWhole(data.decision)}${renderConfidence(number(data.observed), number(data.threshold))}`;
    case 'tool-call':
      return renderWhole((data.artifactData as JsonObject | undefined)?.arguments);
    case 'approval':
    case 'effect':
      return data.artifactData === undefined ? '' : renderWhole(data.artifactData);
    case 'none':
      return renderWhole(data.correlation ?? data.payload);
    case 'clarification':
      return '';
    case 'talk':
      return renderTurns(data);
  }
}

function renderTurns(data: JsonObject): string {
  const turns = turnsOf(data).map(
    ({ who, content }) =>
      `<li><b>${escapeHtml(who)}</b>${typeof content === 'string' ? `<p>${escapeValue(content)}</p>` : renderWhole(content)}</li>`,
  );
  return livePart('turns', turns.length === 0 ? '' : `<ol class="turns">${turns.join('')}</ol>`);
}

/** A part of a card that another person, or a step beside it, changes while the question is open. */
function livePart(name: string, inside: string): string {
  return `<div class="part" data-live="${escapeExact(name)}">${inside}</div>`;
}

/** A turn more, and the end, are two forms, so that Enter in the one never does the other. */
function turn(model: AnswerModel): string {
  const said = area({ name: 'reason', label: 'What you say', required: true });
  return form(model, `${seenTurn(model.interrupt)}${said}`, { label: 'Send', look: 'primary' });
}

function closing(model: AnswerModel): string {
  const { interrupt, choice } = model;
  const outcome = outcomeSchemaOf(interrupt.data)
    ? area({ name: 'editedDecision', label: 'The outcome', required: true })
    : '';
  const last = area({ name: 'reason', label: 'A last word (optional)' });
  return fold(choice.label, form(model, `${outcome}${last}`, { label: choice.label }));
}

/** The place that a turn is said at: a double click says it once. */
function seenTurn({ data: { turnIndex } }: OpenQuestion): string {
  return typeof turnIndex === 'number'
    ? livePart('turn-index', hidden('turnIndex', String(turnIndex)))
    : '';
}

/** What had been heard of the question: sent twice (a double click), it is one answer, and sent later it is another. */
function heard(interrupt: OpenQuestion, { action }: Choice): string {
  const heardBefore = heardOf(interrupt);
  return heardBefore === undefined
    ? ''
    : livePart(`heard ${action}`, hidden('heard', String(heardBefore)));
}

function why(reasoning: string | undefined): string {
  if (!reasoning) return '';
  return `<details class="why" open><summary>Why the agent thinks so</summary><blockquote ${SCROLLS} aria-label="What the agent thought">${escapeValue(reasoning)}</blockquote></details>`;
}

type Asked = Pick<QuestionModel, 'interrupt' | 'standing' | 'viewer'>;

/** What was voted and asked back until now. */
function soFar(asked: Asked): string {
  const { data } = asked.interrupt;
  const votes = votesOf(data);
  const askedBack = askedBackOf(data).map(
    ({ by, text }) => `<li><b>${escapeHtml(by)}</b><p>${escapeValue(text)}</p></li>`,
  );
  return livePart(
    'so-far',
    [
      votes === undefined ? '' : `<p class="votes">${escapeHtml(votes)}</p>${voted(asked)}`,
      askedBack.length === 0
        ? ''
        : `<p>Asked about it:</p><ol class="turns" aria-label="Asked about it">${askedBack.join('')}</ol>`,
    ].join(''),
  );
}

/** Each answer that has votes. A form says what follows from its own; a content that others sent has none. */
function voted(asked: Asked): string {
  const answers = votedAnswers(asked.interrupt.data).map((answer) => {
    const { content, by } = answer;
    const votes = by.map((vote) => {
      const said = voteLines(vote).map((line) => `<p>${escapeValue(line)}</p>`);
      return `<li><b>${escapeValue(vote.voter)}</b>${said.join('')}</li>`;
    });
    const shown = content === undefined ? '' : `${renderWhole(content)}${sameAgain(asked, answer)}`;
    return `<li>${escapeValue(tallyWords(answer))}${shown}<ol class="turns">${votes.join('')}</ol></li>`;
  });
  return answers.length === 0 ? '' : `<ul aria-label="Votes">${answers.join('')}</ul>`;
}

/** What a vote for the same content does. */
function sameAgain({ interrupt, standing, viewer: by }: Asked, answer: VotedAnswer): string {
  if (!standing) return '';
  const { action, effect, content } = answer;
  const told = followsHtml(followsOf(interrupt, { action, effect, content, by }, standing));
  return `<div class="next"><span>With a vote more for it:</span> ${told}</div>`;
}

/** One form for each answer that the question offers. */
function forms(model: QuestionModel): string {
  const { interrupt } = model;
  return choicesOf(interrupt)
    .map((choice, at) =>
      formOf({ ...model, choice, thenId: `then-${at}-${interrupt.interruptId}` }),
    )
    .join('');
}

function formOf(model: AnswerModel): string {
  const { interrupt, choice } = model;
  const { label, effect } = choice;
  switch (fillInOf(interrupt, choice)) {
    case 'turn':
      return turn(model);
    case 'outcome':
      return closing(model);
    case 'change':
      return edit(model);
    case 'answers': {
      const fields = questionsOf(interrupt.data).map(questionField).join('');
      return formShapeOf(interrupt) === 'clarification'
        ? form(model, fields, { label, look: 'primary' })
        : fold(label, form(model, fields, { label: 'Send, and let it decide again' }));
    }
    case 'refinement':
      return withText(model, { field: 'What should change', send: 'Send back' });
    case 'question':
      return withText(model, { field: 'What you want to know', send: 'Ask' });
    case 'reason': {
      const reason = area({ name: 'reason', label: 'Reason (optional)' });
      const look = effect === 'route' ? '' : 'danger';
      return fold(label, form(model, reason, { label, look }));
    }
    case 'nothing':
      return form(model, '', { label, look: 'primary' });
  }
}

/** An answer that needs a text. */
function withText(
  model: AnswerModel,
  { field, send }: { readonly field: string; readonly send: string },
): string {
  const text = area({ name: 'reason', label: field, required: true });
  return fold(model.choice.label, form(model, text, { label: send }));
}

interface Send {
  readonly label: string;
  readonly look?: string;
}

/** The fields and the button, and below them what follows. */
function form(model: AnswerModel, fields: string, { label, look = '' }: Send): string {
  const { interrupt, csrfToken, answerUrl, choice, standing, thenId } = model;
  const described = standing ? ` aria-describedby="${escapeExact(thenId)}"` : '';
  const send = `<button class="${look}"${described}>${escapeHtml(label)}</button>`;
  return `<form method="post" action="${escapeExact(answerUrl)}" class="answer">${hidden('csrf', csrfToken)}${hidden('interruptId', interrupt.interruptId)}${hidden('action', choice.action)}${heard(interrupt, choice)}${fields}${send}${follows(model)}</form>`;
}

function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeExact(value)}">`;
}

/** Names the value that is changed, and sends it. */
const EDIT_WORDS: Readonly<Record<string, { readonly what: string; readonly send: string }>> = {
  effect: { what: 'What came of it', send: 'Record this outcome' },
  'low-confidence': { what: 'The decision', send: 'Accept with changes' },
};

function edit(model: AnswerModel): string {
  const { interrupt, choice } = model;
  const { what, send } = EDIT_WORDS[formShapeOf(interrupt)] ?? {
    what: 'The content',
    send: 'Accept with changes',
  };
  const value = editableOf(interrupt);
  const text = changeTextOf(interrupt);
  if (text === undefined)
    return fold(choice.label, `<p>${escapeHtml(tooLargeWords(interrupt))}</p>`);
  const fields = hasFields(value)
    ? Object.entries(value)
        .map(([name, part]) => memberField(name, part))
        .join('')
    : area({
        name: 'editedDecision',
        label: `${what} (JSON)`,
        value: text,
        required: true,
      });
  return fold(choice.label, form(model, fields, { label: send }));
}

function fold(summary: string, inside: string): string {
  return `<details class="choice"><summary>${escapeHtml(summary)}</summary>${inside}</details>`;
}

/** A field for each member. A text of which a part is hidden is changed as JSON, and so is what has a line break in a name. */
function hasFields(value: JsonValue): value is Record<string, string | number | boolean | null> {
  if (!isFlatObject(value) || Object.keys(value).some((name) => /[\r\n]/.test(name))) return false;
  return !Object.entries(value)
    .flat()
    .some((part) => typeof part === 'string' && hidesAPart(part));
}

function memberField(name: string, value: string | number | boolean | null): string {
  if (typeof value === 'boolean')
    return select(`field.${name}`, {
      label: name,
      options: ['true', 'false'],
      selected: String(value),
    });
  const text = value === null ? '' : String(value);
  // A line has no line breaks: it would send the text without them.
  if (text.length > LINE_CHARACTERS || /[\r\n]/.test(text))
    return area({ name: `field.${name}`, label: name, value: text });
  const mode = typeof value === 'number' ? ' inputmode="decimal"' : '';
  return `<label>${escapeHtml(name)}<input name="field.${escapeExact(name)}" value="${escapeExact(text)}"${mode} autocomplete="off"></label>`;
}

interface Area {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly required?: boolean;
}

function area({ name, label, value = '', required }: Area): string {
  const rows = Math.min(12, Math.max(3, value.split('\n').length + 1));
  return `<label>${escapeHtml(label)}<textarea name="${escapeExact(name)}" rows="${rows}"${required ? ' required' : ''}>\n${escapeExact(value)}</textarea></label>`;
}

interface Select {
  readonly label: string;
  readonly options: readonly string[];
  readonly selected: string;
}

function select(name: string, { label, options, selected }: Select): string {
  const items = options.map(
    (option) =>
      `<option value="${escapeExact(option)}"${option === selected ? ' selected' : ''}>${escapeExact(printableAlone(option))}</option>`,
  );
  return `<label>${escapeHtml(label)}<select name="${escapeExact(name)}" required>${items.join('')}</select></label>`;
}

function questionField({ id, question, schema }: Question): string {
  const name = `answer.${id}`;
  if (schema?.type === 'boolean')
    return select(name, { label: question, options: ['', 'true', 'false'], selected: '' });
  const options = enumOf(schema);
  return options
    ? select(name, { label: question, options: ['', ...options], selected: '' })
    : area({ name, label: question, required: true });
}

function enumOf(schema: JsonObject | undefined): string[] | undefined {
  return Array.isArray(schema?.enum) ? schema.enum.map(String) : undefined;
}

/** What the run does after this answer. */
function follows({ standing, interrupt, choice, thenId, viewer: by }: AnswerModel): string {
  if (!standing) return '';
  const { action, effect } = choice;
  const told = followsHtml(followsOf(interrupt, { action, effect, by }, standing));
  return `<div class="next" id="${escapeExact(thenId)}" data-live="then ${escapeExact(choice.action)}"><span>Then:</span> ${told}</div>`;
}

function followsHtml({ steps, words = '' }: Follows): string {
  const items = steps.map((step) => `<li>${stepWords(step)}</li>`);
  return steps.length === 0 ? escapeHtml(words) : `<ul>${items.join('')}</ul>`;
}

function stepWords({ name, when, isLater, isAgain, isAtLimit }: FollowingStep): string {
  const notes = [
    isAgain ? 'again' : '',
    isAtLimit ? 'unless the loop has reached its limit' : '',
    when ?? '',
    isLater ? 'once the other steps that it waits for have ended' : '',
  ].filter((note) => note !== '');
  return `<b>${escapeHtml(name)}</b>${notes.length === 0 ? '' : ` ${escapeHtml(notes.join(', '))}`}`;
}
