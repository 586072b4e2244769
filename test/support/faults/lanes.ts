// Seeded rounds played several at once, and what they leave: each failure as text, by its seed.
import { expect } from 'vitest';
import type { RunEventDoc } from '../../../schemas/types.generated.ts';
import { neverByChance, tellsOfBroken } from '../broken.ts';
import { checkInvariants, type InspectedHost } from '../invariants.ts';
import type { PatientClient } from './client.ts';

interface Seeded {
  readonly seed: number;
}

/** The runs that a round made, and whose logs can be read. */
export interface Played extends Seeded {
  readonly runIds: readonly string[];
}

/** Plays all plans, `lanes` at once; returns what failed. */
export async function playInLanes<Plan extends Seeded>(
  plans: readonly Plan[],
  lanes: number,
  round: (plan: Plan) => Promise<void>,
): Promise<string[]> {
  const failures: string[] = [];
  const queue = [...plans];
  const lane = async (): Promise<void> => {
    for (let plan = queue.shift(); plan; plan = queue.shift()) {
      try {
        await round(plan);
      } catch (error) {
        const stack = String((error as Error).stack);
        failures.push(`seed ${plan.seed}: ${stack}\n${JSON.stringify(plan)}`);
        console.error(failures.at(-1));
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return failures;
}

/** One that tells of a broken promise is no chance, though it is kept as text. */
export async function expectNone(failures: readonly string[]): Promise<void> {
  const hold = () => expect(failures).toEqual([]);
  await (failures.some(tellsOfBroken) ? neverByChance(hold) : hold());
}

/** Holds the invariants of every run, round by round. */
export async function expectInvariants(
  host: InspectedHost,
  rounds: readonly Played[],
): Promise<void> {
  const broken: string[] = [];
  for (const { seed, runIds } of rounds) {
    await checkInvariants(host, runIds).catch((error: unknown) =>
      broken.push(`seed ${seed}: ${String((error as Error).stack)}`),
    );
  }
  await expectNone(broken);
}

/** The whole log of a run. */
export async function eventsOf(
  client: PatientClient,
  runId: string,
): Promise<readonly RunEventDoc[]> {
  const { body } = await client.ask<{ events: RunEventDoc[] }>(`/v1/runs/${runId}/events`, {
    headers: { accept: 'application/json' },
  });
  return body.events;
}

/** Pays in doubt that the run's log says were put before a human. */
export async function doubtsOf(client: PatientClient, runId: string): Promise<number> {
  return (await eventsOf(client, runId)).filter(({ type, payload }) => {
    const { data } = payload as { data?: { artifactType?: string } };
    return type === 'interrupt.requested' && data?.artifactType === 'effect-in-doubt';
  }).length;
}
