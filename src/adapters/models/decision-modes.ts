// How an endpoint is asked for a decision: the first way that it takes, remembered for each model while this process
// lives. A way that an endpoint has once taken is never left for another one.

/** `tool`: the arguments of one tool; `json_schema`: the text, by the endpoint's own schema output; `text`: as told. */
export const DECISION_MODES = ['tool', 'json_schema', 'text'] as const;
export type DecisionMode = (typeof DECISION_MODES)[number];

/** Callers may name models: the oldest are forgotten and tried again. */
const REMEMBERED_MODELS = 256;

export class DecisionModes {
  readonly #taken = new Map<string, DecisionMode>();
  readonly #fixed: DecisionMode | undefined;

  /** `fixed`: the only way, whatever the endpoint says. */
  constructor(fixed?: DecisionMode) {
    this.#fixed = fixed;
  }

  /** In the order to try them. */
  of(model: string): readonly DecisionMode[] {
    const only = this.#fixed ?? this.#taken.get(model);
    return only === undefined ? DECISION_MODES : [only];
  }

  /** The endpoint began to answer. */
  took(model: string, mode: DecisionMode): void {
    this.#taken.set(model, mode);
    const oldest = this.#taken.keys().next();
    if (this.#taken.size > REMEMBERED_MODELS && !oldest.done) this.#taken.delete(oldest.value);
  }
}
