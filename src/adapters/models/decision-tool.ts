// The decision as the arguments of one final tool (architecture §5): what a model is told about it, and how an answer
// is read, alike for every provider. Text before a call streams as reasoning wherever there are tools; the transcript
// knows nothing of it, there the final output is text.
import { isJsonObject, type JsonValue } from '../../rules/json.ts';
import { faultText, readJson, type JsonFault, type ReadJson } from '../../rules/json-text.ts';
import type { ModelRequest, ModelResponse, TranscriptItem } from '../../ports/models.ts';
import { MODEL_VALUE_LEVELS } from '../../rules/limits.ts';
import { toolIdOf } from './tool-names.ts';
import { unwrapped } from './tool-schema.ts';

/** No tool id gives this name: in the names of tools `_o` is no escape (tool-names.ts). */
export const DECISION_TOOL = 'final_output';
export const DECISION_TOOL_DESCRIPTION =
  'Takes your final output and ends the task. Called alone, once, after everything else.';

const TOOL_RULE = `Here the final output is no text but the arguments of the tool ${DECISION_TOOL}: think aloud in plain text first, then call either tools or ${DECISION_TOOL}, that one alone and once.`;
const FENCED = /^```[A-Za-z]*[ \t]*\n([\s\S]*?)\n?```\s*$/;

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
  /** Text that is no reasoning: the final output of a model that writes it. */
  readonly text: string;
  /** The provider said that the answer is finished. */
  readonly finished: boolean;
}

type ReadAnswer = Pick<ModelResponse, 'kind' | 'calls' | 'final' | 'unusable'>;

/**
 * `final` for the decision alone, by its tool or as text; `calls` for tools alone; `unusable` for everything from which
 * no one intention can be read: then nothing is called, and the model is told why.
 */
export function readAnswer(answer: Answer, { tools }: Pick<ModelRequest, 'tools'>): ReadAnswer {
  const { calls, text } = answer;
  if (calls.length === 0) return { kind: 'final', calls: [], final: text };
  const decisions = calls.filter(({ name }) => name === DECISION_TOOL);
  const sent = calls.map(argumentsOf);
  const fault = faultOf(answer, decisions.length, sent);
  const offered = tools.map(({ toolId }) => toolId);
  if (fault !== undefined) return unusable(answer, fault, offered);
  const values = sent.map((read) => (read.ok ? read.value : null));
  if (decisions.length === 1) return { kind: 'final', calls: [], final: JSON.stringify(values[0]) };
  return {
    kind: 'calls',
    calls: calls.map(({ name }, at) => ({
      toolId: toolIdOf(name, offered),
      arguments: unwrapped(values[at] ?? null, name, tools),
    })),
    final: text,
  };
}

function faultOf(
  { calls, text, finished }: Answer,
  decisionCalls: number,
  sent: readonly ReadJson[],
): string | undefined {
  if (!finished || sent.some((read) => !read.ok && !read.isJson))
    return 'A call of a tool was cut off: its arguments are no JSON.';
  if (calls.some(({ name }) => name.trim() === '')) return 'A call names no tool.';
  for (const [at, read] of sent.entries())
    if (!read.ok) return `${faultText(`The call of ${calls[at]?.name}`, read.fault)}.`;
  const decisions = decisionCalls + (isDecision(text) ? 1 : 0);
  if (decisions > 1) return 'There were two final outputs at once.';
  if (decisions === 1 && calls.length > decisionCalls)
    return 'There was a final output beside calls of tools: give the one or the other.';
  return undefined;
}

/** What was said stays in the conversation as text: the model has to see what it is asked to mend. */
function unusable({ calls, text }: Answer, fault: string, offered: readonly string[]): ReadAnswer {
  const said = calls.map(({ name, arguments: sent }) => `${toolIdOf(name, offered)} ${sent}`);
  const final = [text, ...said].filter(Boolean).join('\n');
  return { kind: 'unusable', calls: [], final, unusable: `${fault} No tool was called.` };
}

/** Whether a text is a final output, fenced or not, and no JSON that somebody quotes while thinking. */
export function isDecision(text: string): boolean {
  const value = parsed(FENCED.exec(text.trim())?.[1] ?? text);
  if (!isJsonObject(value)) return false;
  return Object.hasOwn(value, 'decision') || value.type === 'clarification.request';
}

/** No arguments at all are those of a function without parameters. */
function argumentsOf({ arguments: sent, fault }: SentCall): ReadJson {
  if (fault) return { ok: false, isJson: true, fault };
  return readJson(sent.trim() === '' ? '{}' : sent, MODEL_VALUE_LEVELS);
}

/** To look at, not to keep. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
