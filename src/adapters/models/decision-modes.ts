// How an endpoint is asked for a decision: the first way that it takes, remembered for each model while this process
// lives. A way that an endpoint has once taken is never left for one behind it; and a refusal may pass, so that a way
// that is not the first is kept only when those before it were refused more than once.

/** `tool`: the arguments of one tool; `json_schema`: the text, by the endpoint's own schema output; `text`: as told. */
export const DECISION_MODES = ['tool', 'json_schema', 'text'] as const;
export type DecisionMode = (typeof DECISION_MODES)[number];

/** Callers may name models: the oldest are forgotten and tried again. */
const REMEMBERED_MODELS = 256;
/** Answers in a way that is not the first until no other one is tried. */
const SURE_AFTER = 2;

interface Taken {
  readonly mode: DecisionMode;
  readonly answers: number;
}

export class DecisionModes {
  readonly #taken = new Map<string, Taken>();
  readonly #fixed: DecisionMode | undefined;

  /** `fixed`: the only way, whatever the endpoint says. */
  constructor(fixed?: DecisionMode) {
    this.#fixed = fixed;
  }

  /** In the order to try them. */
  of(model: string): readonly DecisionMode[] {
    if (this.#fixed !== undefined) return [this.#fixed];
    const taken = this.#taken.get(model);
    const isSure = taken?.mode === DECISION_MODES[0] || (taken?.answers ?? 0) >= SURE_AFTER;
    return taken && isSure ? [taken.mode] : DECISION_MODES;
  }

  /** Whether the endpoint has answered for this model, in whatever way. */
  hasAnswered(model: string): boolean {
    return this.#taken.has(model);
  }

  /** The endpoint began to answer: once per call. */
  took(model: string, mode: DecisionMode): void {
    const before = this.#taken.get(model);
    if (before && DECISION_MODES.indexOf(before.mode) < DECISION_MODES.indexOf(mode)) return;
    const answers = before?.mode === mode ? before.answers + 1 : 1;
    this.#taken.set(model, { mode, answers });
    const oldest = this.#taken.keys().next();
    if (this.#taken.size > REMEMBERED_MODELS && !oldest.done) this.#taken.delete(oldest.value);
  }
}
