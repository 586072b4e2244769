// A rehearsal's clock in the runs below it: each is asked what it waits for, or told where the clock stands, by a message
// that it refuses while something of it is under way.
import { codeOf, HostError } from '../rules/errors.ts';
import type { Resting } from '../rules/messages.ts';
import type { RunsDeps } from './deps.ts';

export interface BelowRequest {
  /** Parents before their children. */
  readonly children: readonly string[];
  /** ms epoch. Absent: they are asked, and all below them. */
  readonly toMs?: number;
  /** Makes the ids of the messages, other ones in each try: what a run said before may not hold any more. */
  readonly id: string;
}

export interface Below {
  /** Parents before their children. */
  readonly children: readonly string[];
  /** ms epoch. */
  readonly nextMs?: number;
  /** One of those that were named has ended. */
  readonly hasEnded?: true;
}

type EngineDeps = Pick<RunsDeps, 'engine'>;

/** Throws service_unavailable while something below is under way. */
export function keepTimeBelow(deps: EngineDeps, request: BelowRequest): Promise<Below> {
  return request.toMs === undefined ? askBelow(deps, request) : tellBelow(deps, request);
}

async function askBelow(deps: EngineDeps, { children, id }: BelowRequest): Promise<Below> {
  const asked = [...children];
  let nextMs = Infinity;
  for (let at = 0; at < asked.length; at++) {
    const runId = asked[at] ?? '';
    const rests = await rest(deps, { runId, id });
    // Whoever started it is still to be told.
    if (!rests && at < children.length) return { children: [], hasEnded: true };
    if (!rests) throw new HostError('service_unavailable', { reason: `${runId} has just ended.` });
    nextMs = Math.min(nextMs, rests.nextMs ?? Infinity);
    asked.push(...rests.children);
  }
  return { children: asked, ...(nextMs === Infinity ? {} : { nextMs }) };
}

async function tellBelow(deps: EngineDeps, { children, toMs, id }: BelowRequest): Promise<Below> {
  for (const runId of children) await rest(deps, { runId, id, toMs });
  return { children };
}

/** Undefined: it has ended, or is not there any more. */
async function rest(
  { engine }: EngineDeps,
  { runId, id, toMs }: { readonly runId: string; readonly id: string; readonly toMs?: number },
): Promise<Resting | undefined> {
  const to = toMs === undefined ? {} : { toMs };
  const message = { kind: 'keep-time' as const, bodyDigest: '', ...to };
  try {
    return (await engine.send(runId, `${id}-${runId}`, message)).rests;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'run_state_conflict' || code === 'not_a_rehearsal') return undefined;
    throw error;
  }
}
