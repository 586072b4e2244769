// The fields of the form that forks a run, and the way back from what was sent to the request of the API (replay.md). Pure.
// What is left empty, or as it is, is not asked for; whether the rest is right is said by the same rules as the API's.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { asField, asSent } from '../words/typed.ts';
import { jsonOf, type FormTexts } from './start-fields.ts';

/** Names of the controls; a prompt's is followed by its agentId. */
export const FORK_CONTROLS = {
  mode: 'mode',
  answer: 'answer',
  prompt: 'prompt.',
  provider: 'provider',
  model: 'model',
  configurable: 'configurable',
  inputs: 'inputs',
  tools: 'tools',
  onDivergence: 'onDivergence',
  answers: 'answers',
} as const;

/** An agent of the run, as it is now. */
export interface ForkAgent {
  readonly agentId: string;
  readonly prompt: string;
}

/** At which control something is wrong: '' is the whole. */
export interface ForkFault {
  readonly control: string;
  /** Without its subject: `is required`. */
  readonly message: string;
}

export interface SentFork {
  readonly mode: 'replay' | 'branch';
  readonly overlay: JsonObject;
  readonly faults: readonly ForkFault[];
}

/** `from` is where the fork leaves its source: the answer's event. */
export function sentFork(
  form: FormTexts,
  { from, agents }: { readonly from: number; readonly agents: readonly ForkAgent[] },
): SentFork {
  const faults: ForkFault[] = [];
  const read = (control: string): JsonValue | undefined => {
    const text = textIn(form, control);
    if (text.trim() === '') return undefined;
    const field = jsonOf(text);
    if (field.kind === 'fault') faults.push({ control, message: field.message });
    return field.kind === 'given' ? field.value : undefined;
  };
  const object = (control: string): JsonObject | undefined => {
    const value = read(control);
    if (value === undefined) return undefined;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
    faults.push({ control, message: 'must be a JSON object' });
    return undefined;
  };
  const mode = form[FORK_CONTROLS.mode];
  if (mode !== 'replay' && mode !== 'branch')
    faults.push({ control: FORK_CONTROLS.mode, message: 'must be chosen' });
  const value = read(FORK_CONTROLS.answer);
  const inputs = object(FORK_CONTROLS.inputs);
  const configurable = { ...object(FORK_CONTROLS.configurable), ...modelIn(form) };
  const prompts = promptsIn(form, agents);
  const overlay = {
    ...(inputs ? { inputs } : {}),
    ...(Object.keys(configurable).length > 0 ? { configurable } : {}),
    ...(Object.keys(prompts).length > 0 ? { agents: prompts } : {}),
    ...(form[FORK_CONTROLS.tools] === 'recorded' ? { tools: 'recorded' } : {}),
    ...(form[FORK_CONTROLS.onDivergence] === 'live' ? { onDivergence: 'live' } : {}),
    ...(form[FORK_CONTROLS.answers] === 'recorded' ? { answers: 'recorded' } : {}),
    ...(value === undefined ? {} : { answer: { seq: from, value } }),
  };
  return { mode: mode === 'replay' ? mode : 'branch', overlay, faults };
}

/** Of all prompts, as a form sends them: a form that is sent is bounded, and its other fields want their room. */
const PROMPTS_CHARACTERS = 384 * 1024;

/** Prompts stand in their fields, to be changed there. The field of one that has no room is empty: it stays as it is. */
export function promptTexts(agents: readonly ForkAgent[]): FormTexts {
  let left = PROMPTS_CHARACTERS;
  const shown = agents.filter(({ prompt }) => {
    const { length } = new URLSearchParams({ prompt: asSent(prompt) }).toString();
    if (length <= left) left -= length;
    else return false;
    return true;
  });
  return Object.fromEntries(
    shown.map(({ agentId, prompt }) => [FORK_CONTROLS.prompt + agentId, prompt]),
  );
}

function textIn(form: FormTexts, control: string): string {
  return asField(form[control] ?? '');
}

/** The flat keys win over nested ones. */
function modelIn(form: FormTexts): JsonObject {
  const [provider, model] = [FORK_CONTROLS.provider, FORK_CONTROLS.model].map((control) =>
    textIn(form, control).trim(),
  );
  return {
    ...(provider ? { 'ai.provider': provider } : {}),
    ...(model ? { 'ai.model': model } : {}),
  };
}

function promptsIn(form: FormTexts, agents: readonly ForkAgent[]): JsonObject {
  const entries = agents.flatMap(({ agentId, prompt }) => {
    const text = textIn(form, FORK_CONTROLS.prompt + agentId);
    const isSame = text === asField(prompt);
    return text.trim() === '' || isSame ? [] : [[agentId, { systemPrompt: text }] as const];
  });
  return Object.fromEntries(entries);
}

/** The control that shows what a JSON pointer of the request is about; '' where none does. */
export function controlOf(pointer: string, agents: readonly ForkAgent[]): string {
  const [part = '', name = ''] = pointer
    .replace(/^\/runOptionsOverlay/, '')
    .split('/')
    .slice(1);
  if (part === 'agents') {
    const known = agents.find(({ agentId }) => agentId === name);
    return known ? FORK_CONTROLS.prompt + known.agentId : '';
  }
  const ownName = part === 'configurable' ? configuredBy(name) : part;
  const controls: readonly string[] = Object.values(FORK_CONTROLS);
  return controls.includes(ownName) ? ownName : '';
}

function configuredBy(key: string): string {
  if (key === 'ai.provider') return FORK_CONTROLS.provider;
  return key === 'ai.model' ? FORK_CONTROLS.model : FORK_CONTROLS.configurable;
}
