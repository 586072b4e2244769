// The decision as the arguments of one final tool (architecture §5): what a model is told about it, and how an answer
// is read, alike for every provider. Text before a call streams as reasoning wherever there are tools; the transcript
// knows nothing of it, there the final output is text.
import {
  CALL_WRITTEN,
  decisionOf,
  decisionsIn,
  distinctDecisions,
  NOT_ALONE,
  sameDecisionAs,
  TWO_OUTPUTS,
  type WrittenDecisions,
} from '../../rules/decision-text.ts';
import { faultText, readJson, type JsonFault, type ReadJson } from '../../rules/json-text.ts';
import type { ModelRequest, ModelResponse, TranscriptItem } from '../../ports/models.ts';
import { MODEL_VALUE_LEVELS } from '../../rules/limits.ts';
import { encodedObject, NO_ARGUMENTS } from './argument-text.ts';
import { titleOf } from './call-in-pieces.ts';
import { functionNameOf, toolIdOf } from './tool-names.ts';
import { takesObject, unwrapped } from './tool-schema.ts';

/** No tool id gives this name: in the names of tools `_o` is no escape (tool-names.ts). */
export const DECISION_TOOL = 'final_output';
export const DECISION_TOOL_DESCRIPTION =
  'Takes your final output and ends the task. Called alone, once, after everything else.';

const TOOL_RULE = `Here the final output is no text but the arguments of the tool ${DECISION_TOOL}: think aloud in plain text first, then call either tools or ${DECISION_TOOL}, that one alone and once.`;

/** The names that a model may call, as its provider knows them. */
export function offeredNames({ tools }: Pick<ModelRequest, 'tools'>): string[] {
  return [...tools.map(({ toolId }) => functionNameOf(toolId)), DECISION_TOOL];
}

/** The conversation with the rule of the decision tool in its system text. */
export function toldOfDecisionTool(items: readonly TranscriptItem[]): TranscriptItem[] {
  return withRule(items, TOOL_RULE);
}

/** The conversation with the schema of the final output in its system text. */
export function toldOfSchema({
  items,
  outputSchema,
}: Pick<ModelRequest, 'items' | 'outputSchema'>): TranscriptItem[] {
  const rule = `The final output is text and matches this JSON Schema: ${JSON.stringify(outputSchema)}`;
  return withRule(items, rule);
}

/** Endpoints differ in whether they take a second system message: there is one. */
function withRule(items: readonly TranscriptItem[], rule: string): TranscriptItem[] {
  const at = items.findIndex(({ role }) => role === 'system');
  const told = {
    role: 'system' as const,
    text: [items[at]?.text, rule].filter(Boolean).join('\n'),
  };
  return at < 0 ? [told, ...items] : items.map((item, index) => (index === at ? told : item));
}

export interface SentCall {
  readonly name: string;
  readonly arguments: string;
  /** Of arguments that came as a value, whose text nobody has. */
  readonly fault?: JsonFault | undefined;
}

/** What a streamed answer came to. */
export interface Answer {
  /** Functions by the names that the provider knows, arguments as sent, in the order of the calls. */
  readonly calls: readonly SentCall[];
  /** Text that was not shown as reasoning: the final output of a model that writes it. */
  readonly text: string;
  /** All that was said outside of thoughts, the text included: a decision may be in what was shown. */
  readonly said: string;
  /** The provider said that the answer is finished. */
  readonly finished: boolean;
  /** Why the calls cannot be read as one intention: a sentence for the model. */
  readonly malformed?: string;
}

type Tools = ModelRequest['tools'];
type ReadAnswer = Pick<ModelResponse, 'kind' | 'calls' | 'final' | 'unusable'>;

/**
 * `final` for the decision alone, by its tool or as text; `calls` for tools alone; `unusable` for everything from which
 * no one intention can be read: then nothing is called, and the model is told why.
 */
export function readAnswer(answer: Answer, { tools }: Pick<ModelRequest, 'tools'>): ReadAnswer {
  const { calls, text, said } = answer;
  const sent = calls.map((call) => argumentsOf(call, tools));
  const values = sent.map((read) => (read.ok ? read.value : null));
  const decided = values.filter((_, at) => calls[at]?.name === DECISION_TOOL);
  const inText = decisionsIn(text);
  const decisions = {
    called: decided.map((value) => JSON.stringify(value)),
    inText,
    inSaid: said === text ? inText : decisionsIn(said),
  };
  const fault = faultOf(answer, sent, decisions);
  const offered = tools.map(({ toolId }) => toolId);
  if (fault !== undefined) return unusable(answer, fault, offered);
  if (calls.length === 0) return { kind: 'final', calls: [], final: finalIn(answer, decisions) };
  const [called] = decisions.called;
  if (called !== undefined) return { kind: 'final', calls: [], final: called };
  return {
    kind: 'calls',
    calls: calls.map(({ name }, at) => ({
      toolId: toolIdOf(name, offered),
      arguments: unwrapped(values[at] ?? null, name, tools),
    })),
    final: text,
  };
}

/** Final outputs of one answer, as JSON: arguments of the decision tool, and what its text and all that was said hold. */
interface Decisions {
  readonly called: readonly string[];
  readonly inText: WrittenDecisions;
  readonly inSaid: WrittenDecisions;
}

function faultOf(
  { calls, finished, malformed }: Answer,
  sent: readonly ReadJson[],
  decisions: Decisions,
): string | undefined {
  if (malformed !== undefined) return malformed;
  if ((calls.length > 0 && !finished) || sent.some((read) => !read.ok && !read.isJson))
    return 'A call of a tool was cut off: its arguments are no JSON.';
  if (calls.some(({ name }) => name.trim() === '')) return 'A call names no tool.';
  for (const [at, read] of sent.entries())
    if (!read.ok) return `${faultText(titleOf(calls[at]?.name ?? ''), read.fault)}.`;
  return faultOfDecisions(decisions, calls.length);
}

/**
 * Beside calls a plan in a sentence is nothing, nor is a record that is quoted; a plain output on a line of its own is a
 * decision beside anything. So is what was meant as one and cannot be read: it differs from every other.
 */
function faultOfDecisions(
  { called, inText, inSaid }: Decisions,
  calls: number,
): string | undefined {
  const alone = [...inSaid.alone, ...inText.alone];
  const own = [...alone, inSaid.unread, inText.unread].filter((each) => each !== undefined);
  if (called.length > 1) return TWO_OUTPUTS;
  if (calls > called.length)
    return called.length + own.length > 0
      ? 'There was a final output beside calls of tools: give the one or the other.'
      : undefined;
  const [decision] = called;
  const unclear = inSaid.unclear ?? inText.unclear;
  const isUnclear = decision === undefined || alone.length > 0 || unclear === CALL_WRITTEN;
  if (unclear !== undefined && isUnclear) return unclear;
  if (decision === undefined) {
    const written = [inSaid, inText].map(decisionOf).filter((each) => each !== undefined);
    if (isHidden(inSaid, inText)) return NOT_ALONE;
    return distinctDecisions([...alone, ...written]).length > 1 ? TWO_OUTPUTS : undefined;
  }
  const written = [...own, inSaid.closing, inText.closing].filter((each) => each !== undefined);
  return written.every(sameDecisionAs(decision)) ? undefined : TWO_OUTPUTS;
}

/** A decision in the text, in braces that were opened in what was shown before it. */
function isHidden(inSaid: WrittenDecisions, inText: WrittenDecisions): boolean {
  return decisionOf(inText) !== undefined && decisionOf(inSaid) === undefined;
}

/** The text, unless the decision was shown before it. */
function finalIn({ text }: Answer, { inText, inSaid }: Decisions): string {
  return decisionOf(inText) === undefined ? (decisionOf(inSaid) ?? text) : text;
}

/** What was said stays in the conversation as text: the model has to see what it is asked to mend. */
function unusable({ calls, text }: Answer, fault: string, offered: readonly string[]): ReadAnswer {
  const said = calls.map(({ name, arguments: sent }) => `${toolIdOf(name, offered)} ${sent}`);
  const final = [text, ...said].filter(Boolean).join('\n');
  return { kind: 'unusable', calls: [], final, unusable: `${fault} No tool was called.` };
}

/** Whether a text holds a plain final output on a line of its own, and no JSON alone that somebody quotes while thinking. */
export function holdsDecision(text: string): boolean {
  return decisionsIn(text).alone.length > 0;
}

/** No arguments at all, and null, are those of a function without parameters. */
function argumentsOf({ name, arguments: sent, fault }: SentCall, tools: Tools): ReadJson {
  if (fault) return { ok: false, isJson: true, fault };
  const read = readJson(sent.trim() === '' ? NO_ARGUMENTS : sent, MODEL_VALUE_LEVELS);
  if (!read.ok || !(name === DECISION_TOOL || takesObject(name, tools))) return read;
  if (read.value === null) return { ok: true, value: {} };
  return (typeof read.value === 'string' && encodedObject(read.value)) || read;
}
