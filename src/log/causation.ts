// What an event follows from, and what followed from it, over runs (seed 003 §1.2, §2.3 scenario 3). Causes are a chain up
// to the run's first event and on into the parent's; effects are a tree, whose rows stand behind their cause: one pass
// over each log finds them.
import type { LogLink } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';

/** Causes that are told at most. */
export const MAX_CAUSES = 500;
/** Effects that are told at most, and how far they may be from the event. */
export const MAX_EFFECTS = 500;
export const MAX_EFFECT_DEPTH = 100;
/** Rows of logs that one question reads at most, a page of them, and runs that one run spawned. */
const MAX_ROWS = 20_000;
const PAGE_ROWS = 2_000;
const MAX_CHILDREN = 500;

type Parts = Pick<Stores, 'log' | 'families'>;

export interface Causes {
  readonly event: LogLink;
  /** The nearest first. */
  readonly causes: readonly LogLink[];
  /** There are more. */
  readonly truncated: boolean;
  /** What the last one follows from is in no log of this tenant: a delivery, or an event of another host. */
  readonly beyond?: string;
}

/** Undefined: no event of the run has this id. */
export async function causesOf(
  { log }: Parts,
  { tenant, runId }: RunRef,
  eventId: string,
): Promise<Causes | undefined> {
  const [event, ...causes] = await log.causes(tenant, eventId, MAX_CAUSES);
  if (event?.runId !== runId) return undefined;
  const { causationId } = causes.at(-1) ?? event;
  const truncated = causationId !== undefined && causes.length >= MAX_CAUSES;
  return {
    ...{ event, causes, truncated },
    ...(causationId === undefined || truncated ? {} : { beyond: causationId }),
  };
}

/** An effect, and how many steps it is away from the event. */
export type Effect = LogLink & { readonly depth: number };

export interface Effects {
  readonly event: LogLink;
  /** Run by run, that of the event first, in the order of each log. */
  readonly effects: readonly Effect[];
  /** There may be more. */
  readonly truncated: boolean;
}

/** Undefined: no event of the run has this id. */
export async function effectsOf(
  parts: Parts,
  run: RunRef,
  eventId: string,
): Promise<Effects | undefined> {
  const [event] = await parts.log.causes(run.tenant, eventId, 0);
  if (event?.runId !== run.runId) return undefined;
  const walk = new Walk(event);
  const runs: { readonly run: RunRef; readonly after: number }[] = [{ run, after: event.sequence }];
  // A run that an effect spawned comes to the list's end: what follows from its first event is looked for there.
  for (const { run: of, after } of runs) {
    if (!(await readEffects(parts, walk, { run: of, after }))) break;
    const { runs: children } = await parts.families.children(of, { limit: MAX_CHILDREN });
    if (children.length >= MAX_CHILDREN) walk.truncated = true;
    runs.push(...children.map((child) => ({ run: child.run, after: -1 })));
  }
  const { effects, truncated } = walk;
  return { event, effects, truncated };
}

class Walk {
  readonly effects: Effect[] = [];
  truncated = false;
  #left = MAX_ROWS;
  readonly #depths: Map<string, number>;

  constructor({ eventId }: LogLink) {
    this.#depths = new Map([[eventId, 0]]);
  }

  /** Rows that may still be read. */
  get left(): number {
    return this.#left;
  }

  take(rows: readonly LogLink[]): void {
    this.#left -= rows.length;
    for (const row of rows) {
      const of = this.#depths.get(row.causationId ?? '');
      if (of === undefined) continue;
      if (of >= MAX_EFFECT_DEPTH || this.effects.length >= MAX_EFFECTS) {
        this.truncated = true;
        continue;
      }
      this.#depths.set(row.eventId, of + 1);
      this.effects.push({ ...row, depth: of + 1 });
    }
  }
}

/** False: nothing more may be read, or told. */
async function readEffects(
  { log }: Parts,
  walk: Walk,
  { run, after }: { readonly run: RunRef; readonly after: number },
): Promise<boolean> {
  for (let last = after; ;) {
    const limit = Math.min(PAGE_ROWS, walk.left);
    if (limit === 0) walk.truncated = true;
    if (limit === 0 || walk.effects.length >= MAX_EFFECTS) return false;
    const rows = await log.links(run, { after: last, limit });
    walk.take(rows);
    last = rows.at(-1)?.sequence ?? last;
    if (rows.length < limit) return true;
  }
}
