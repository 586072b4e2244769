// `openwop runs answer`: what a run asks, answered once, and what became of the answer in the words of the page
// (interrupt.md). The question that was shown is named, so that an answer never meets the next one.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { resumeValueOf } from '../words/answer.ts';
import { choiceOf, choicesOf, fillInOf, type Choice, type FillIn } from '../words/choices.ts';
import { ANSWER_NOTICES, OVER } from '../words/outcome.ts';
import { printable } from '../words/printable.js';
import { headOf, outcomeSchemaOf, questionsOf, type OpenQuestion } from '../words/question.ts';
import { CALLED, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, EXIT, usageFault } from './faults.ts';
import { eachOnce } from './input-values.ts';
import { jsonOf } from './json-argument.ts';
import { nothingSent, openPrompt, type Prompt } from './prompt.ts';
import { commandLines, questionHead, subjectLines } from './question-lines.ts';
import { getQuestions, getRun, namedRun, runPath } from './run-reads.ts';
import { statusText } from './run-tables.ts';
import { wrapped } from './terminal.ts';

export interface AnswerFlags extends JsonFlag {
  readonly node?: string;
  readonly interrupt?: string;
  readonly answer?: readonly string[];
  readonly reason?: string;
  readonly value?: string;
}

export interface AnswerCall {
  readonly runId: string;
  readonly action: string | undefined;
  readonly flags: AnswerFlags;
}

interface Answer {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly value: JsonValue;
}

export async function answerRun(cli: Cli, call: AnswerCall): Promise<void> {
  const { runId, flags } = call;
  const { open } = await getQuestions(cli.client, runId);
  const meant = open.filter(
    ({ nodeId, interruptId }) =>
      (flags.node ?? nodeId) === nodeId && (flags.interrupt ?? interruptId) === interruptId,
  );
  if (meant.length === 0) {
    const over = await overAnswer(cli, call);
    if (!over) throw await asksNothing(cli, call, open);
    return send(cli, call, over);
  }
  const action = call.action ?? impliedAction(flags);
  const isSaid = action !== undefined || flags.value !== undefined;
  if (cli.isAttended && !flags.json && (!isSaid || meant.length > 1))
    return asked(cli, { ...call, action }, meant);
  const [question, ...others] = meant;
  if (!question || others.length > 0 || !isSaid) return listChoices(cli, call, meant);
  const value = valueOf(question, { action, flags });
  // What comes meanwhile is another question: the answer is to this one alone.
  if (!flags.json) cli.note(nameOf(question));
  return send(cli, call, { ...question, value });
}

/** Which question is answered, for who did not see it. */
function nameOf({ nodeId, interruptId, kind, data }: OpenQuestion): string {
  const { title } = headOf({ kind, data }, nodeId);
  return `Answers: ${printable(title)} (${printable(nodeId)}, ${printable(interruptId)})`;
}

/** Answers to questions can be nothing else. */
function impliedAction({ answer, value }: AnswerFlags): string | undefined {
  return answer !== undefined && value === undefined ? 'answers' : undefined;
}

/** In a pipe nobody is asked: the choices are told, and the command wants more said. */
function listChoices(cli: Cli, { runId, flags }: AnswerCall, open: readonly OpenQuestion[]): void {
  const { screen } = cli;
  cli.tell(
    flags,
    {
      questions: open.map((question) => ({
        ...{ nodeId: question.nodeId, interruptId: question.interruptId, kind: question.kind },
        choices: choicesOf(question),
      })),
    },
    () =>
      open
        .map((question) =>
          [
            ...questionHead(question, screen),
            ...subjectLines(question),
            ...commandLines(question, runId, screen),
          ].join('\n'),
        )
        .join('\n\n'),
  );
  if (!flags.json) cli.note('Nothing was sent: say which answer.');
  cli.ends(EXIT.usage);
}

interface Said {
  readonly action: string | undefined;
  readonly flags: AnswerFlags;
}

/** What is sent for what was said. Throws CliFault where the question has no such answer. */
function valueOf(question: OpenQuestion, { action, flags }: Said): JsonValue {
  const { value } = flags;
  if (action === undefined) return wholeAnswer(flags);
  const choice = requireChoice(question, action);
  const filled = fillInOf(question, choice);
  if (value !== undefined && filled !== 'change' && filled !== 'outcome')
    throw usageFault('--value goes with edit-accept, with close, or alone. Nothing was sent.');
  if (flags.answer !== undefined && filled !== 'answers')
    throw usageFault('--answer goes with answers to questions. Nothing was sent.');
  const result = resumeValueOf(formOf(question, choice, flags), question);
  if (!result.ok) throw usageFault(`${result.message} ${HINTS[filled]}`.trim());
  return result.value;
}

/** Throws CliFault where something is said beside it. */
function wholeAnswer({ value = '', reason, answer }: AnswerFlags): JsonValue {
  const [beside] = [
    ...(reason === undefined ? [] : ['--reason']),
    ...(answer === undefined ? [] : ['--answer']),
  ];
  if (beside !== undefined)
    throw usageFault(
      `--value alone is the whole answer: ${beside} does not go with it. Nothing was sent.`,
    );
  return jsonOf(value, '--value');
}

/** Throws CliFault where the question has no answer of this name. */
function requireChoice(question: OpenQuestion, action: string): Choice {
  const choice = choiceOf(question, action);
  if (choice) return choice;
  const known = choicesOf(question)
    .map((each) => each.action)
    .join(', ');
  throw usageFault(
    known === ''
      ? 'No person answers this: it goes on when another system sends its event. Nothing was sent.'
      : `This question has no answer "${action}", but: ${known}. Nothing was sent.`,
  );
}

/** The fields of the page's form. */
function formOf(
  question: OpenQuestion,
  choice: Choice,
  { reason, value = '', answer = [] }: AnswerFlags,
): Readonly<Record<string, string>> {
  const said = { action: choice.action, ...(reason === undefined ? {} : { reason }) };
  switch (fillInOf(question, choice)) {
    case 'outcome':
    case 'change':
      return { ...said, editedDecision: value };
    case 'answers':
      return { ...said, ...answersOf(question.data, answer) };
    case 'refinement':
    case 'question':
    case 'turn':
    case 'reason':
    case 'nothing':
      return said;
  }
}

/** By what is missing or wrong. */
const HINTS: Readonly<Record<FillIn, string>> = {
  answers: '(--answer id=text)',
  change: "(--value '{…}')",
  refinement: "(--reason '…')",
  question: "(--reason '…')",
  turn: "(--reason '…')",
  outcome: "(--value '…')",
  reason: '',
  nothing: '',
};

function answersOf(data: JsonObject, given: readonly string[]): Readonly<Record<string, string>> {
  const ids = questionsOf(data).map(({ id }) => id);
  const answers = eachOnce('--answer', given, (text) => {
    const at = text.indexOf('=');
    const id = text.slice(0, Math.max(at, 0));
    if (!ids.includes(id))
      throw usageFault(
        `--answer is id=text, with one of the ids ${ids.join(', ')}. Nothing was sent.`,
      );
    return [id, text.slice(at + 1)];
  });
  return Object.fromEntries(Object.entries(answers).map(([id, text]) => [`answer.${id}`, text]));
}

/** With the person at the terminal: which question, which answer, what it does, and a last word. */
async function asked(cli: Cli, call: AnswerCall, open: readonly OpenQuestion[]): Promise<void> {
  const prompt = openPrompt(cli);
  try {
    const question = await pick(cli, prompt, {
      from: open,
      shown: (each) => [...questionHead(each, cli.screen), ...subjectLines(each)].join('\n'),
    });
    const choice =
      call.action === undefined
        ? await choose(cli, prompt, question)
        : requireChoice(question, call.action);
    const { action, label } = choice;
    const flags = await missing(prompt, question, { choice, flags: call.flags });
    const value = valueOf(question, { action, flags });
    const sure = await prompt.ask(`${action}: ${label}. Send this? (y/n)`);
    if (!/^y(es)?$/i.test(sure)) throw nothingSent();
    await send(cli, call, { ...question, value });
  } finally {
    prompt.close();
  }
}

function choose(cli: Cli, prompt: Prompt, question: OpenQuestion): Promise<Choice> {
  const from = choicesOf(question);
  // Says that no person answers this.
  if (from.length === 0) requireChoice(question, 'answers');
  return pick(cli, prompt, {
    from,
    shown: ({ action, label }) => `${action}: ${label}`,
    always: true,
  });
}

interface Offer<Item> {
  readonly from: readonly Item[];
  readonly shown: (item: Item) => string;
  /** Also where there is but one. */
  readonly always?: true;
}

/** One of those offered, by its number. The only question is not asked about, the only answer is. */
async function pick<Item>(
  { note, screen }: Cli,
  prompt: Prompt,
  { from, shown, always }: Offer<Item>,
): Promise<Item> {
  const [only] = from;
  if (only !== undefined && from.length === 1 && !always) {
    note(shown(only));
    return only;
  }
  from.forEach((item, at) => {
    const [first = '', ...more] = shown(item).split('\n');
    note([...wrapped(`${at + 1}. ${first}`, '', screen), ...more].join('\n'));
  });
  for (;;) {
    const text = await prompt.ask(`Which? (1 to ${from.length}; nothing: leave it as it is)`);
    if (text === '') throw nothingSent();
    const item = /^\d{1,3}$/.test(text) ? from[Number(text) - 1] : undefined;
    if (item !== undefined) return item;
    note(`"${text}" is none of them.`);
  }
}

/** What is asked for a text that an answer has with it. */
const TEXT_PROMPTS = {
  refinement: 'What should change?',
  question: 'What do you want to know?',
  turn: 'What do you say?',
  reason: 'Reason (may be empty):',
} as const;

/** What the answer needs beside its name, where it was not said. */
async function missing(
  prompt: Prompt,
  question: OpenQuestion,
  { choice, flags }: { readonly choice: Choice; readonly flags: AnswerFlags },
): Promise<AnswerFlags> {
  const filled = fillInOf(question, choice);
  switch (filled) {
    case 'answers': {
      const answer = [...(flags.answer ?? [])];
      for (const { id, question: text, schema } of questionsOf(question.data)) {
        if (answer.some((each) => each.startsWith(`${id}=`))) continue;
        const options = Array.isArray(schema?.enum)
          ? ` (${schema.enum.map(String).join(', ')})`
          : '';
        answer.push(`${id}=${await prompt.ask(text + options)}`);
      }
      return { ...flags, answer };
    }
    case 'change':
      return { ...flags, value: flags.value ?? (await prompt.ask('The changed value, as JSON:')) };
    case 'outcome':
      return outcomeSchemaOf(question.data)
        ? { ...flags, value: flags.value ?? (await prompt.ask('The outcome:')) }
        : flags;
    case 'refinement':
    case 'question':
    case 'turn':
    case 'reason':
      return { ...flags, reason: flags.reason ?? (await prompt.ask(TEXT_PROMPTS[filled])) };
    case 'nothing':
      return flags;
  }
}

async function send(
  cli: Cli,
  { runId, flags }: AnswerCall,
  { nodeId, interruptId, value }: Answer,
): Promise<void> {
  const path = `${runPath(runId)}/interrupts/${encodeURIComponent(nodeId)}`;
  const answer = await cli.client
    .post<{ status: keyof typeof ANSWER_NOTICES }>(path, {
      body: { resumeValue: value, interruptId },
      idempotencyKey: freshKey(),
    })
    .catch(namedRun(runId))
    .catch(inWords);
  cli.tell(flags, answer, () => ANSWER_NOTICES[answer.status]);
}

/** The words of the page for what became of the question. */
function inWords(error: unknown): never {
  if (!(error instanceof CliFault)) throw error;
  const words = (OVER as Readonly<Record<string, string | undefined>>)[error.code];
  if (words === undefined) throw error;
  const { resolvedBy } = error.facts.details ?? {};
  const who = typeof resolvedBy === 'string' ? ` It was: ${resolvedBy}.` : '';
  throw new CliFault(words + who, { ...error.facts, cause: error });
}

/**
 * A question that was named and is not open any more: the host tells what became of it, to who answers. Its node
 * stands in the log.
 */
async function overAnswer(
  cli: Cli,
  { runId, action, flags }: AnswerCall,
): Promise<Answer | undefined> {
  const { interrupt: interruptId, value } = flags;
  if (interruptId === undefined || (action === undefined && value === undefined)) return undefined;
  const { events } = await cli.client.get<{ events: readonly RunEventDoc[] }>(
    `${runPath(runId)}/events`,
  );
  const at = events.findIndex(({ payload }) => bodyOf(payload).interruptId === interruptId);
  const { nodeId, payload } = events[at] ?? {};
  if (nodeId === undefined) return undefined;
  const { key } = bodyOf(payload);
  const asked = events.slice(at).find((event) => {
    const { type, nodeId: askedAt, payload: body } = event;
    return type === 'interrupt.requested' && askedAt === nodeId && bodyOf(body).key === key;
  });
  const said = { action, flags };
  if (!asked) {
    const whole = action === undefined ? wholeAnswer(flags) : untold(action, flags);
    return { nodeId, interruptId, value: whole };
  }
  const { kind, data } = bodyOf(asked.payload) as Pick<OpenQuestion, 'kind' | 'data'>;
  const question = { nodeId, interruptId, kind, data, requestedAtMs: 0 };
  return { nodeId, interruptId, value: valueOf(question, said) };
}

function bodyOf(payload: unknown): JsonObject {
  return (payload ?? {}) as JsonObject;
}

/** The log does not say what was asked. Throws CliFault for what has no place in an answer then. */
function untold(action: string, flags: AnswerFlags): JsonValue {
  const { reason, value, answer } = flags;
  const extra = value !== undefined ? '--value' : answer !== undefined ? '--answer' : undefined;
  if (extra !== undefined)
    throw usageFault(
      `The log does not say what was asked: ${extra} has no place. Nothing was sent.`,
    );
  return { action, ...(reason === undefined ? {} : { reason }) };
}

async function asksNothing(
  cli: Cli,
  { runId, flags }: AnswerCall,
  open: readonly OpenQuestion[],
): Promise<CliFault> {
  const facts = { code: 'interrupt_not_found' };
  if (open.length > 0)
    return new CliFault(
      `Run ${runId} asks no such question${flags.node === undefined ? '' : ` at ${flags.node}`}. \`${CALLED} runs answer ${runId}\` shows what it asks.`,
      facts,
    );
  const { status } = await getRun(cli.client, runId);
  return new CliFault(`Run ${runId} asks nothing now. It is: ${statusText(status)}.`, facts);
}
