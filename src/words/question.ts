// What a run asks: the shape of the question, what it is called, and what may be changed in it (interrupt.md). Page,
// terminal and command line take it from here.
import { jsonBytes, type JsonObject, type JsonValue } from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import { printableJson } from './printable.js';
import { asSent } from './typed.ts';

/** An open interrupt, as the snapshot's fold gives it. */
export interface OpenQuestion {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: string;
  readonly data: JsonObject;
  readonly resumeSchema?: unknown;
  readonly requestedAtMs: number;
  readonly deadlineMs?: number;
}

export type FormShape =
  'approval' | 'low-confidence' | 'clarification' | 'talk' | 'effect' | 'tool-call' | 'none';

/** What the host itself asks about, by artifactType. */
const SHAPES: ReadonlyMap<unknown, FormShape> = new Map([
  ['effect-in-doubt', 'effect'],
  ['rehearsed-call', 'effect'],
  ['tool-call', 'tool-call'],
]);

/** Which form an interrupt gets. Kinds that another system answers get none. */
export function formShapeOf(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): FormShape {
  if (interrupt.kind === 'approval') {
    return SHAPES.get(interrupt.data.artifactType) ?? 'approval';
  }
  if (interrupt.kind === 'low-confidence' || interrupt.kind === 'clarification') {
    return interrupt.kind;
  }
  return interrupt.kind === 'conversation.exchange' ? 'talk' : 'none';
}

/** The value that a form is proposed to change: an artifact, a decision, the outcome of an effect. */
export function editableOf(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): JsonValue {
  switch (formShapeOf(interrupt)) {
    case 'low-confidence':
      return interrupt.data.decision ?? null;
    case 'approval':
      return interrupt.data.artifactData ?? null;
    case 'effect':
      return {};
    case 'tool-call':
    case 'clarification':
    case 'talk':
    case 'none':
      return null;
  }
}

/** The answer that puts `value` in place of what is proposed. */
export function changeTo(
  interrupt: Pick<OpenQuestion, 'kind' | 'data'>,
  value: JsonValue,
): JsonObject {
  const name = formShapeOf(interrupt) === 'low-confidence' ? 'decision' : 'editedArtifactData';
  return { action: 'edit-accept', [name]: value };
}

/** Longest text of one field in characters. */
export const FIELD_CHARACTERS = 64 * 1024;

/**
 * What is proposed to be changed, as JSON in which nothing is hidden. Undefined: sent back unchanged, it would be refused as too
 * large, or its text is longer than a field.
 */
export function changeTextOf(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): string | undefined {
  if (isAboveAnswer(interrupt)) return undefined;
  const value = editableOf(interrupt);
  const texts = [printableJson(value, 2), printableJson(value)];
  return texts.find((text) => asSent(text).length <= FIELD_CHARACTERS);
}

function isAboveAnswer(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): boolean {
  return jsonBytes(changeTo(interrupt, editableOf(interrupt))) > INLINE_VALUE_BYTES;
}

/** Why there is no such text. */
export function tooLargeWords(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): string {
  const limit = `: an answer holds at most ${INLINE_VALUE_BYTES / 1024} KiB`;
  return `This value is too large for a form here${isAboveAnswer(interrupt) ? limit : ''}.`;
}

/** What is asked: the question's own words, else the usual ones. `node` names the step that asks. */
export function headOf(
  { kind, data }: Pick<OpenQuestion, 'kind' | 'data'>,
  node: string,
): { readonly title: string; readonly lead: string } {
  const text = (name: string) => {
    const said = name === 'description' ? unspelled(data) : data[name];
    return typeof said === 'string' ? said || undefined : undefined;
  };
  switch (formShapeOf({ kind, data })) {
    case 'low-confidence':
      return {
        title: text('title') ?? `${node}: is this decision right?`,
        lead:
          text('description') ??
          `The agent ${text('agentId') ?? ''} decided, but is less sure than required. The run waits for you.`,
      };
    case 'effect':
      return {
        title: text('title') ?? `${node}: perform this again?`,
        lead:
          text('description') ??
          'The host was interrupted while it performed this, and cannot find out whether it took effect. It is not repeated without your word.',
      };
    case 'tool-call':
      return {
        title: text('title') ?? `${node}: may this be called?`,
        lead:
          text('description') ??
          "The agent asks for a tool that is called only with a human's word.",
      };
    case 'approval':
      return {
        title: text('title') ?? `${node}: approve?`,
        lead: text('description') ?? 'The run waits for an approval.',
      };
    case 'clarification':
      return {
        title: text('title') ?? `${node}: a question`,
        lead: text('description') ?? 'The run waits for an answer.',
      };
    case 'talk':
      return {
        title: text('title') ?? `${node}: a conversation`,
        lead: text('prompt') ?? 'The run waits until somebody closes the conversation.',
      };
    case 'none':
      return {
        title: text('title') ?? `${node}: waits for another system`,
        lead:
          text('description') ?? 'Nothing has to be done here; it goes on when the event arrives.',
      };
  }
}

/**
 * The description without the answers that end it (`accept: Call it once.`): who reads nothing else needs them there, and
 * whoever uses this shows each answer's own words.
 */
function unspelled({ description, choices }: JsonObject): JsonValue | undefined {
  if (typeof description !== 'string' || !Array.isArray(choices)) return description;
  const spelled = choices
    .filter(isJsonObject)
    .map(({ action = null, label = null }) => `${wordOf(action)}: ${wordOf(label)}.`)
    .join(' ');
  return description.endsWith(spelled)
    ? description.slice(0, description.length - spelled.length).trimEnd()
    : description;
}

function wordOf(value: JsonValue): string {
  return typeof value === 'string' ? value : '';
}

/** What comes of it where nobody answers in time: a wait that runs out fails its step (interrupt.md). */
export function silenceWords(interrupt: Pick<OpenQuestion, 'kind' | 'data'>): string {
  return formShapeOf(interrupt) === 'none'
    ? 'If nothing has come by then, this step fails.'
    : 'If nobody answers by then, this step fails: silence is never a yes.';
}

/** What was said in a conversation, as far as its question shows it; oldest first. */
export function turnsOf(data: JsonObject): readonly { who: string; content: JsonValue }[] {
  const turns = Array.isArray(data.turns) ? data.turns : [];
  return turns.filter(isJsonObject).map(({ speakerId, from, content = null }) => {
    const who = speakerId ?? from;
    return { who: typeof who === 'string' ? who : '', content };
  });
}

/** What was asked about the question before anybody decided; oldest first. */
export function askedBackOf({ askedBack }: JsonObject): readonly { by: string; text: string }[] {
  const all = Array.isArray(askedBack) ? askedBack : [];
  return all.filter(isJsonObject).map(({ by, text }) => ({
    by: typeof by === 'string' ? by : '',
    text: typeof text === 'string' ? text : '',
  }));
}

/** The schema that the outcome of a conversation has to fit; undefined: it may be closed without one. */
export function outcomeSchemaOf(data: JsonObject): JsonObject | undefined {
  return schemaOf(data.outcomeSchema);
}

export interface Question {
  readonly id: string;
  readonly question: string;
  readonly schema?: JsonObject;
}

/** Questions of a clarification; a low-confidence escalation has one free one. */
export function questionsOf(data: JsonObject): readonly Question[] {
  const list = Array.isArray(data.questions) ? data.questions : [];
  const questions = list.flatMap((item) =>
    isJsonObject(item) && typeof item.id === 'string' && typeof item.question === 'string'
      ? [{ id: item.id, question: item.question, schema: schemaOf(item.schema) }]
      : [],
  );
  return questions.length > 0
    ? questions
    : [{ id: 'guidance', question: 'What should the agent know?' }];
}

function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function schemaOf(value: JsonValue | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}
