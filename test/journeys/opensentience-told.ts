// How the journeys with agents as processes read what runs told, and what they need of the machine.
import { expect, it } from 'vitest';
import type { JsonValue } from '../../src/rules/json.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import type { Frame } from '../facade/sse-client.ts';
import { canRun } from '../support/opensentience/examples.ts';
import { EXAMPLES, type Told } from './opensentience-scene.ts';
export const IDS = EXAMPLES.map((name) => `com.example.${name}`).sort();
const all = EXAMPLES.every(canRun);

export function itHere(name: string, test: () => Promise<void>): void {
  it(name, test);
}

/** Needs the examples. */
export function itWithAll(name: string, test: () => Promise<void>): void {
  it.skipIf(!all)(`[python, go] ${name}`, test);
}

/** Of a run that completed. */
export function decisionOf(told: Told): JsonValue | undefined {
  expect(told.snapshot.status).toBe('completed');
  return told.of('agent.decided').at(-1)?.decision;
}

/** What a tool told while it worked. */
export function isProgress({ type, payload }: RunEventDoc): boolean {
  const { channel = '' } = payload as { channel?: string };
  return type === 'output.chunk' && channel.startsWith('tool.');
}
export const eventOf = (frame: Frame): RunEventDoc => JSON.parse(frame.data) as RunEventDoc;
export const progressIn = (frames: readonly Frame[]) =>
  frames
    .filter(({ event }) => event === 'output.chunk')
    .map(eventOf)
    .filter(isProgress);

/** Text of one tool's progress, joined. */
export function progressOf(told: Told, toolId: string): string {
  return told
    .of('output.chunk')
    .filter((payload) => payload.toolId === toolId)
    .map(({ chunk }) => chunk as string)
    .join('');
}
