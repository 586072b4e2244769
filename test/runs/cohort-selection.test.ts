// Whether a cohort's change can be made at all (src/runs/cohort-selection.ts), where that is a build of the worker.
import { describe, expect, it, vi } from 'vitest';
import type { Caller } from '../../src/ports/caller.ts';
import { createModels } from '../../src/adapters/models/index.ts';
import { codeOf, type HostError } from '../../src/rules/errors.ts';
import type { Build, Deployment } from '../../src/ports/deployments.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { cohortRequest, pickedRuns, type SelectionDeps } from '../../src/runs/cohort-selection.ts';
import type { CohortCreateRequest } from '../../schemas/types.generated.ts';
import { agentNode, definition, pinned } from '../support/definitions.ts';
import { runRow, silentLogger } from '../support/log-parts.ts';
import { subjectOf } from '../../src/rules/subject.ts';

const caller: Caller = {
  ...{ tenant: 'default', subject: subjectOf('api-key', 'default', 'tester') },
  scopes: ['deployments:operate'],
};
const redactor = createRedactor([]);
const build = (buildId: string, hasWorker: boolean): Build => ({
  ...{ buildId, hasWorker, state: 'inactive', share: 0, openRuns: 0, heldRuns: 0 },
});
const TWO: Deployment = {
  builds: [build('two', true), build('one', false)],
  runsWithoutWorker: 0,
};

/** Of one run that is there. */
async function picked(
  deployment: Deployment | undefined,
  change: CohortCreateRequest['change'],
  by = caller,
) {
  const deps = {
    ...{ redactor, deployments: { read: async () => deployment } },
    stores: {
      cohorts: { candidates: async () => ({ runs: [runRow('run-a')], unreadable: [] }) },
    },
  } as unknown as SelectionDeps;
  return pickedRuns(deps, by, cohortRequest(deps, by, { select: {}, change }));
}

async function refused(...given: Parameters<typeof picked>) {
  const error = await picked(...given).catch((thrown: unknown) => thrown);
  return { code: codeOf(error), ...(error as HostError).details };
}

it('[I116] a change that would be stored otherwise is refused at its place', async () => {
  const systemPrompt = `Say sk-${'a'.repeat(20)}.`;
  expect(await refused(TWO, { agents: { 'a.b': { systemPrompt } } })).toMatchObject({
    ...{ code: 'validation_error', field: '/change/agents/a.b/systemPrompt' },
  });
});

describe('a cohort by a build of the worker', () => {
  it('that is there is taken, also where it takes no new runs', async () => {
    expect(await picked(TWO, { build: 'two' })).toEqual({ runIds: ['run-a'] });
  });

  it('is refused of who operates no builds, whether or not there is one of that id', async () => {
    for (const build of ['two', 'three'])
      expect(await refused(TWO, { build }, { ...caller, scopes: ['runs:create'] })).toMatchObject({
        ...{ code: 'forbidden', scopeRequired: 'deployments:operate' },
      });
  });

  it.each<[string, Deployment | undefined, CohortCreateRequest['change'], object]>([
    [
      'none that is known: told which are',
      TWO,
      { build: 'three' },
      { code: 'validation_error', field: '/change/build', candidates: ['two', 'one'] },
    ],
    [
      'one without a worker: its forks would wait',
      TWO,
      { build: 'one' },
      { code: 'build_conflict' },
    ],
    [
      'a host whose workers name none',
      undefined,
      { build: 'two' },
      { code: 'capability_not_provided' },
    ],
    [
      'beside a configuration',
      TWO,
      { build: 'two', configurable: { a: 1 } },
      { code: 'validation_error', field: '/change/build' },
    ],
    [
      'beside an agent',
      TWO,
      { build: 'two', agents: { a: { systemPrompt: 'b' } } },
      { code: 'validation_error', field: '/change/build' },
    ],
  ])('is refused of %s', async (_what, deployment, change, told) => {
    expect(await refused(deployment, change)).toMatchObject(told);
  });
});

// [I97]
describe('a cohort whose change some of its runs refuse', () => {
  const key = { apiKey: 'k' };
  const models = createModels({ openai: key, anthropic: key });
  /** Runs that ask these providers, newest first. */
  const of = (...providers: readonly string[]) => {
    const runs = providers.map((provider, at) => {
      const run = runRow(`run-${at}`);
      const workflow = definition('desk', [agentNode('n', 'a.b')]);
      const configurable = { ai: { provider } };
      return { ...run, input: { ...run.input, definition: workflow, configurable } };
    });
    const deps = {
      ...{ redactor, models },
      stores: { cohorts: { candidates: async () => ({ runs, unreadable: [] }) } },
    } as unknown as SelectionDeps;
    const change = { configurable: { temperature: 1 } };
    return pickedRuns(deps, caller, cohortRequest(deps, caller, { select: {}, change }));
  };

  it('has all of them where one takes it, whichever is the first', async () => {
    expect(await of('anthropic', 'openai')).toEqual({ runIds: ['run-0', 'run-1'] });
    expect(await of('openai', 'anthropic')).toEqual({ runIds: ['run-0', 'run-1'] });
  });

  it('is asked about once for runs that are alike, and others go on in between', async () => {
    const order: string[] = [];
    vi.spyOn(models, 'providers').mockImplementation(() => {
      order.push('asked');
      setImmediate(() => order.push('others'));
      return ['openai'];
    });
    try {
      await expect(of('one', 'two', 'one', 'three', 'two')).rejects.toThrow();
    } finally {
      vi.restoreAllMocks();
    }
    const turns = ['asked', 'others', 'asked', 'others', 'asked'];
    expect(order.slice(0, turns.length)).toEqual(turns);
    expect(order.filter((one) => one === 'asked')).toHaveLength(3);
  });

  it('is refused where none takes it', async () => {
    await expect(of('anthropic', 'anthropic')).rejects.toMatchObject({
      ...{ code: 'validation_error', details: { provider: 'anthropic', supported: ['openai'] } },
    });
  });
});

// [I97]
describe('a cohort of runs in which a name stands for several agents', () => {
  const stored = vi.fn();
  const manifest = { packVersion: '1.0.0', systemPrompt: 'Be fair.' };
  /** Runs with these agents, newest first. */
  const of = (...ids: readonly (readonly string[])[]) => {
    const runs = ids.map((agentIds, at) => {
      const run = runRow(`run-${at}`);
      const agents = Object.fromEntries(agentIds.map((id) => [id, pinned(id)]));
      return { ...run, input: { ...run.input, agents } };
    });
    const content = {
      get: async () => new TextEncoder().encode(JSON.stringify(manifest)),
      put: stored,
    };
    const deps = {
      ...{ redactor, models: createModels({ openai: { apiKey: 'k' } }) },
      stores: { content, cohorts: { candidates: async () => ({ runs, unreadable: [] }) } },
    } as unknown as SelectionDeps;
    const change = { agents: { judge: { systemPrompt: 'Be strict.' } } };
    return pickedRuns(deps, caller, cohortRequest(deps, caller, { select: {}, change }));
  };

  it('has that run as one that is refused by itself, and nothing is stored before a fork', async () => {
    const ambiguous = ['a.judge', 'b.judge'];
    expect(await of(ambiguous, ['a.judge'], ['c.other'])).toEqual({ runIds: ['run-0', 'run-1'] });
    expect(stored).not.toHaveBeenCalled();
  });

  it('is refused where that is all of them', async () => {
    await expect(of(['a.judge', 'b.judge'])).rejects.toMatchObject({
      ...{ code: 'validation_error', details: { field: '/change/agents/judge' } },
    });
  });
});

// [I97]
describe('a cohort of runs of which some cannot be read', () => {
  const { createdAtMs: AT_MS } = runRow('run-a');
  const page = (
    runs: readonly string[],
    ids: readonly string[],
    asks: Partial<CohortCreateRequest> = {},
  ) => {
    const unreadable = ids.map((runId, at) => ({ runId, createdAtMs: AT_MS - at }));
    const warned: object[] = [];
    const deps = {
      ...{ redactor, deployments: { read: async () => TWO } },
      logger: { ...silentLogger, warn: (_: string, fields: object) => void warned.push(fields) },
      stores: {
        cohorts: { candidates: async () => ({ runs: runs.map((id) => runRow(id)), unreadable }) },
      },
    } as unknown as SelectionDeps;
    const asked = cohortRequest(deps, caller, {
      ...{ select: {}, change: { build: 'two' }, ...asks },
    });
    return { warned, picking: pickedRuns(deps, caller, asked) };
  };

  // [I112]
  it('has the others, and they are named to who reads its report, and to the operator', async () => {
    const { warned, picking } = page(['run-a'], ['run-b']);
    const leftOut = { runs: 1, runIds: ['run-b'] };
    expect(await picking).toEqual({ runIds: ['run-a'], leftOut });
    expect(warned).toEqual([leftOut]);
  });

  it('names the newest of many, and counts all', async () => {
    const ids = Array.from({ length: 30 }, (_, at) => `run-${at}`);
    const { leftOut } = await page(['run-a'], ids).picking;
    expect(leftOut).toEqual({ runs: 30, runIds: ids.slice(0, 20) });
  });

  it('counts none that is older than all that were to be picked', async () => {
    const { picking } = page(['run-a'], ['run-b', 'run-c'], { select: { last: 1 } });
    expect(await picking).toEqual({
      ...{ runIds: ['run-a'], leftOut: { runs: 1, runIds: ['run-b'] } },
    });
  });

  it('is refused where that is all of them', async () => {
    await expect(page([], ['run-a', 'run-b']).picking).rejects.toMatchObject({
      ...{ code: 'history_undecodable' },
      message: 'None of the 2 runs that are like that can be read now.',
    });
  });

  it.each<[string, Partial<CohortCreateRequest>, string]>([
    ['the tag', { select: { tag: 'paid' } }, 'validation_error'],
    ['the agent', { change: { agents: { nobody: { systemPrompt: 'Hm.' } } } }, 'agent_not_found'],
  ])('is refused where no other has %s, with how many they are', async (_, asks, code) => {
    const reason = async (ids: readonly string[]) => {
      const error = await page(['run-a'], ids, asks).picking.catch((thrown: unknown) => thrown);
      expect(codeOf(error)).toBe(code);
      return (error as HostError).message;
    };
    expect(await reason(['run-b', 'run-c'])).toContain('; runs that cannot be read now: 2');
    expect(await reason([])).not.toContain('cannot be read');
  });
});
