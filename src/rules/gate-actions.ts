// The answers that an approval gate offers, and what each does (interrupt.md §approval): the loader refuses what has no
// effect here, workflow code goes by the effect, and pages show it. An answer whose effect nobody declared never lets a
// run go on.
import type { ApprovalAction, ApprovalGateConfig } from '../../schemas/types.generated.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

/**
 * What an answer does to the step that asks. `continue`: the step is done. `route`: it is done, and only edges with a
 * condition that holds lead on. `end`: it is declined, which an edge with `any_failed` may take. `ask-again`: what was
 * said is kept, and the question stands.
 */
export type ActionEffect = 'continue' | 'route' | 'end' | 'ask-again';

/** One answer, as it is frozen with the question. A type, not an interface: it is JSON. */
export type OfferedAction = {
  readonly action: string;
  /** What the answer does, in a person's words. */
  readonly label: string;
  readonly effect: ActionEffect;
};

/** Answers that a gate may offer: more than a person can tell apart. */
const MAX_ACTIONS = 12;

/** The protocol's answers with the effect that they have there; `refine` has none on this host, and is never a yes. */
const PROTOCOL_EFFECTS: ReadonlyMap<string, ActionEffect> = new Map([
  ['accept', 'continue'],
  ['edit-accept', 'continue'],
  ['reject', 'end'],
  ['ask', 'ask-again'],
]);

const LABELS: ReadonlyMap<string, string> = new Map([
  ['accept', 'Accept'],
  ['edit-accept', 'Accept with changes'],
  ['refine', 'Ask for changes'],
  ['reject', 'Reject'],
  ['ask', 'Ask something first'],
]);

const DEFAULT_ACTIONS: NonNullable<ApprovalGateConfig['actions']> = ['accept', 'reject'];

type Declared = Exclude<ApprovalAction, string>;

/** `edit` is an old name of `edit-accept` (interrupt.md). */
export function canonicalAction(action: string): string {
  return action === 'edit' ? 'edit-accept' : action;
}

function declaredOf(given: ApprovalAction): Declared {
  const declared = typeof given === 'string' ? { action: given } : given;
  return { ...declared, action: canonicalAction(declared.action) };
}

function actionsOf({ actions = DEFAULT_ACTIONS }: ApprovalGateConfig): readonly Declared[] {
  return actions.map(declaredOf);
}

/** What is wrong with the answers of a gate, each by its place among them. `isTest`: of a definition made for tests. */
export function actionFaults(
  config: ApprovalGateConfig,
  isTest: boolean,
): readonly { readonly at: number; readonly message: string }[] {
  const actions = actionsOf(config);
  return actions.flatMap(({ action, effect }, at) => {
    const isRepeated = actions.findIndex((other) => other.action === action) < at;
    const message = isRepeated
      ? `"${action}" is already offered`
      : at >= MAX_ACTIONS
        ? `a gate offers at most ${MAX_ACTIONS} answers`
        : effectFault(action, effect, isTest);
    return message === undefined ? [] : [{ at, message }];
  });
}

function effectFault(
  action: string,
  declared: ActionEffect | undefined,
  isTest: boolean,
): string | undefined {
  const fixed = PROTOCOL_EFFECTS.get(action);
  if (fixed !== undefined)
    return declared === undefined || declared === fixed
      ? undefined
      : `"${action}" has the effect "${fixed}" in the protocol: give another effect a name of its own`;
  const asksForChanges = action === 'refine';
  if (asksForChanges && declared === 'continue')
    return 'an answer that asks for changes does not let the run go on: "refine" has the effect "route", "end" or "ask-again"';
  if (declared !== undefined || isTest) return undefined;
  return (
    `this host does not know what "${action}" does: write it as ` +
    `{"action": "${action}", "effect": "end"}, or with the effect ` +
    (asksForChanges ? '"route" or "ask-again"' : '"route", "continue" or "ask-again"')
  );
}

/** Of what only definitions made for tests leave undeclared: nothing goes on. */
const UNDECLARED_EFFECTS: ReadonlyMap<string, ActionEffect> = new Map([['refine', 'ask-again']]);

/** The answers of a gate, in its order. */
export function offeredActions(config: ApprovalGateConfig): OfferedAction[] {
  return actionsOf(config).map(({ action, label, effect }) => ({
    action,
    label: label ?? LABELS.get(action) ?? action,
    effect: PROTOCOL_EFFECTS.get(action) ?? effect ?? UNDECLARED_EFFECTS.get(action) ?? 'end',
  }));
}

/** The answers that were frozen with a question; none of one that no gate asks. */
export function offeredIn({ choices }: JsonObject): readonly OfferedAction[] {
  return Array.isArray(choices) ? (choices as unknown as readonly OfferedAction[]) : [];
}

/** The effect of an answer among those offered; undefined: it is none of them. */
export function effectOf(
  offered: readonly OfferedAction[],
  action: string,
): ActionEffect | undefined {
  return offered.find((one) => one.action === action)?.effect;
}

/**
 * Why somebody answered so: `feedback`, or `reason`, which stands for it where that is absent, or else what should change
 * (`refineFeedback`).
 */
export function reasonOf({ feedback, reason, refineFeedback }: JsonObject): string | undefined {
  return textOf(feedback) ?? textOf(reason) ?? wishIn(refineFeedback);
}

/** An answer as outputs of its gate: conditions and inputs find why it was given under both names, whichever it was sent by. */
export function outputsOf(answer: JsonObject): JsonObject {
  const why = reasonOf(answer);
  return why === undefined ? answer : { ...answer, feedback: why, reason: why };
}

/** What should change, in words. */
export function wishIn(refineFeedback: JsonValue | undefined): string | undefined {
  return isJsonObject(refineFeedback) ? textOf(refineFeedback.text) : undefined;
}

/** The answer's name; empty where it has none. */
export function actionIn(value: JsonValue): string {
  return isJsonObject(value) && typeof value.action === 'string' ? value.action : '';
}

/** A no as an error says it: `what` names who said it, without a full stop. */
export function noOf(what: string, reason: string | undefined): string {
  return reason === undefined ? `${what}.` : `${what}: ${reason}`;
}

/** Both are given, and differ: only one of them could be told. */
export function hasTwoReasons({ feedback, reason }: JsonObject): boolean {
  const [one, other] = [textOf(feedback), textOf(reason)];
  return one !== undefined && other !== undefined && one !== other;
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
