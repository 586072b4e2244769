// /healthz and /readyz: public, without tenant data.
import { codeOf } from '../../rules/errors.ts';
import type { FacadeDeps } from '../deps.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { shared } from '../shared.ts';

/** Runs with a stopped projection that readiness names. */
const NAMED_PROBLEMS = 20;
/** An answer serves all who ask within this time, in ms: nobody needs a key to ask. */
const READINESS_MS = 1_000;

export const HEALTH = {
  method: 'get',
  path: '/healthz',
  operationId: 'health',
  summary: 'The process is up.',
  access: 'public',
  ofNoMajor: true,
  success: { status: 200, description: 'It is.', schema: shape('Health') },
} as const satisfies Declaration;

export const READINESS = {
  method: 'get',
  path: '/readyz',
  operationId: 'readiness',
  summary:
    'Temporal and the database answer; stopped projections are counted by code, of 20 runs at most.',
  access: 'public',
  ofNoMajor: true,
  success: { status: 200, description: 'Ready.', schema: shape('Readiness') },
  others: [{ status: 503, description: 'Not ready.', schema: shape('Readiness') }],
} as const satisfies Declaration;

export function healthRoutes(deps: FacadeDeps, isDraining: () => boolean): Route[] {
  const look = shared(() => readiness(deps), READINESS_MS);
  return [
    answered(HEALTH, () => ({ body: { status: 'ok' } })),
    answered(READINESS, async () => {
      const { temporal, database, projection } = await look();
      const draining = isDraining();
      const ready = temporal === 'ok' && database === 'ok' && !draining;
      const body = {
        status: ready ? 'ready' : 'not-ready',
        temporal,
        // Which of them: runs of the in-memory one end with its process.
        engine: deps.config.inMemory ? 'temporal-in-memory' : 'temporal',
        database,
        projection,
        ...(draining ? { draining } : {}),
      };
      return { status: ready ? 200 : 503, body };
    }),
  ];
}

interface Readiness {
  readonly temporal: string;
  readonly database: string;
  readonly projection: string | Readonly<Record<string, number>>;
}

/** Projection problems concern single runs: they are told, and the process stays ready for all others. */
async function readiness({ engine, stores, log, logger }: FacadeDeps): Promise<Readiness> {
  const [temporal, database, problems] = await Promise.all([
    state(engine.ping()),
    state(stores.ping()),
    log.problems(NAMED_PROBLEMS).catch(() => []),
  ]);
  if (problems.length > 0) logger.debug('projection stopped', { problems });
  // Run ids are tenant data: the public report counts by code, the log names the runs.
  const counts: Record<string, number> = {};
  for (const { problem } of problems) counts[problem] = (counts[problem] ?? 0) + 1;
  return { temporal, database, projection: problems.length === 0 ? 'ok' : counts };
}

async function state(answer: Promise<void>): Promise<string> {
  try {
    await answer;
    return 'ok';
  } catch (error) {
    return codeOf(error) ?? 'internal_error';
  }
}
