// /healthz and /readyz (spec/01 §19): public, without tenant data.
import { codeOf } from '../../core/errors.ts';
import type { FacadeDeps } from '../deps.ts';
import type { Route } from '../route.ts';

/** Runs with a stopped projection that readiness names. */
const NAMED_PROBLEMS = 20;

export function healthRoutes(deps: FacadeDeps, isDraining: () => boolean): Route[] {
  return [
    {
      method: 'get',
      path: '/healthz',
      operationId: 'health',
      summary: 'The process is up.',
      access: 'public',
      success: { status: 200, description: 'It is.' },
      errors: [],
      handle({ response }) {
        response.status(200).json({ status: 'ok' });
      },
    },
    {
      method: 'get',
      path: '/readyz',
      operationId: 'readiness',
      summary: 'Temporal and the database answer; projection problems are named.',
      access: 'public',
      success: { status: 200, description: 'Ready; 503 with the same shape when not.' },
      errors: [],
      async handle({ response }) {
        const { ready, report } = await readiness(deps, isDraining());
        response.status(ready ? 200 : 503).json(report);
      },
    },
  ];
}

interface Readiness {
  readonly ready: boolean;
  readonly report: Record<string, unknown>;
}

/** Projection problems concern single runs: they are told, and the process stays ready for all others. */
export async function readiness(
  { engine, stores, logger }: FacadeDeps,
  draining: boolean,
): Promise<Readiness> {
  const [temporal, database, problems] = await Promise.all([
    state(engine.ping()),
    state(stores.ping()),
    stores.log.problems(NAMED_PROBLEMS).catch(() => []),
  ]);
  const ready = temporal === 'ok' && database === 'ok' && !draining;
  if (problems.length > 0) logger.debug('projection stopped', { problems });
  // Run ids are tenant data: the public report counts by code, the log names the runs.
  const counts: Record<string, number> = {};
  for (const { problem } of problems) counts[problem] = (counts[problem] ?? 0) + 1;
  const projection = problems.length === 0 ? 'ok' : counts;
  return {
    ready,
    report: {
      status: ready ? 'ready' : 'not-ready',
      temporal,
      database,
      projection,
      ...(draining ? { draining } : {}),
    },
  };
}

async function state(answer: Promise<void>): Promise<string> {
  try {
    await answer;
    return 'ok';
  } catch (error) {
    return codeOf(error) ?? 'internal_error';
  }
}
