// What every invocation in a log must look like (RFC 0077 §E with the loop of RFC 0077 §E; RFC 0024; RFC 0002 §B):
// one letter per event, and the letters of a bracket match one grammar.
import { expect } from 'vitest';
import { reasoningBytes } from '../../activities/reasoning-writer.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { boundText } from '../../src/rules/tokens.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';

export interface Bracket {
  readonly agentId: string;
  readonly invocationId: string;
  outcome: string;
  readonly events: RunEventDoc[];
}

const LETTERS: Readonly<Record<string, string>> = {
  'agent.invocation.started': 'S',
  'agent.promptResolved': 'P',
  'prompt.composed': 'c',
  'agent.reasoning.delta': 'd',
  'agent.reasoned': 'R',
  'provider.usage': 'u',
  'envelope.refusal': 'x',
  'agent.toolCalled': 'T',
  'agent.toolReturned': 't',
  'agent.decided': 'D',
  'agent.handoff': 'H',
  'agent.invocation.completed': 'C',
};
/**
 * A turn: deltas and their closing event (absent when verbosity is off), usage, then the calls and their returns. What
 * was said before a failure is sealed without usage.
 */
const GRAMMAR = /^S(P+c((d?R)?ux?(T*t+)?)*(d?R)?(DH?)?C|C)$/;
/** Keys that content-free events must not have (RFC 0077 §C). */
const CONTENT = 'prompt result body input output apiKey secret credentials token'.split(' ');

export function payloadOf(event: RunEventDoc | undefined): JsonObject {
  return (event?.payload ?? {}) as JsonObject;
}

/** '' for what is no text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** All that these events show live, in order. */
export function deltasOf(events: readonly RunEventDoc[]): string {
  return events
    .filter(({ type }) => type === 'agent.reasoning.delta')
    .map((event) => textOf(payloadOf(event).delta))
    .join('');
}

/** Deltas in a row become one `d`. */
export function shapeOf({ events }: Pick<Bracket, 'events'>): string {
  return events
    .map(({ type }) => LETTERS[type] ?? '?')
    .join('')
    .replace(/d+/g, 'd');
}

/** The brackets of a log in the order of their openings; fails when an event of an agent is outside of one. */
function bracketsOf(events: readonly RunEventDoc[]): Bracket[] {
  const open = new Map<string, Bracket>();
  const all: Bracket[] = [];
  for (const event of events) {
    if (!LETTERS[event.type]) continue;
    const nodeId = event.nodeId ?? '';
    const { agentId, invocationId, outcome } = payloadOf(event);
    if (event.type === 'agent.invocation.started') {
      expect(open.has(nodeId), `${nodeId}: one bracket at a time`).toBe(false);
      const bracket = {
        agentId,
        invocationId,
        outcome: '',
        events: [] as RunEventDoc[],
      } as Bracket;
      open.set(nodeId, bracket);
      all.push(bracket);
    }
    const bracket = open.get(nodeId);
    // A node that begins tells who passed control to it.
    if (!bracket && event.type === 'agent.handoff') continue;
    if (!bracket) throw new Error(`${event.type} at ${event.sequence} is outside of a bracket`);
    bracket.events.push(event);
    if (event.type !== 'agent.invocation.completed') continue;
    expect(invocationId).toBe(bracket.invocationId);
    bracket.outcome = textOf(outcome);
    open.delete(nodeId);
  }
  expect([...open.keys()], 'every bracket is closed').toEqual([]);
  expect(new Set(all.map(({ invocationId }) => invocationId)).size).toBe(all.length);
  return all;
}

/** Everything that holds of the agents in any log whose agents have come to rest. */
export function checkBrackets(events: readonly RunEventDoc[]): Bracket[] {
  const brackets = bracketsOf(events);
  for (const bracket of brackets) {
    expect(shapeOf(bracket)).toMatch(GRAMMAR);
    for (const event of bracket.events) {
      const { agentId, fromAgentId } = payloadOf(event);
      if (event.type.startsWith('agent.')) expect(agentId ?? fromAgentId).toBe(bracket.agentId);
      if (/^[SC]$/.test(LETTERS[event.type] ?? ''))
        for (const key of CONTENT) expect(payloadOf(event)).not.toHaveProperty(key);
    }
    checkCalls(bracket.events);
    checkBlocks(bracket.events);
  }
  return brackets;
}

/** RFC 0002 §B: every call returns once, caused by its call; nothing decides while a call is out. */
function checkCalls(events: readonly RunEventDoc[]): void {
  const out = new Map<string, RunEventDoc>();
  const seen = new Set<string>();
  for (const event of events) {
    const { callId: id, status } = payloadOf(event);
    const callId = textOf(id);
    if (event.type === 'agent.toolCalled') {
      expect(seen.has(callId)).toBe(false);
      seen.add(callId);
      out.set(callId, event);
    } else if (event.type === 'agent.toolReturned') {
      const called = out.get(callId);
      if (!called) expect(status, 'only a refused call was never called').toBe('forbidden');
      else expect(event.causationId).toBe(called.eventId);
      out.delete(callId);
    } else expect([...out.keys()], `${event.type} while calls are out`).toEqual([]);
  }
}

/** RFC 0024: sequence from 0 in each block, one closing event, same verbosity, the text as far as the bound lets it. */
function checkBlocks(events: readonly RunEventDoc[]): void {
  let block: JsonObject[] = [];
  for (const event of events) {
    const payload = payloadOf(event);
    if (event.type === 'agent.reasoning.delta') {
      expect(payload.sequence).toBe(block.length);
      block.push(payload);
      continue;
    }
    if (block.length === 0) continue;
    expect(event.type, 'a block is closed by its reasoned event').toBe('agent.reasoned');
    const verbosity = payload.verbosity as 'summary' | 'full';
    expect(new Set(block.map((delta) => delta.verbosity))).toEqual(new Set([verbosity]));
    checkText(
      block.map(({ delta }) => textOf(delta)).join(''),
      textOf(payload.reasoning),
      verbosity,
    );
    block = [];
  }
}

/**
 * The closing text is the deltas' concatenation. Above the bound of its verbosity both are cut: the deltas at the
 * bound, the closing text with `…` inside of it.
 */
function checkText(deltas: string, closing: string, verbosity: 'summary' | 'full'): void {
  const cut = closing.endsWith('…') && closing !== deltas;
  expect(cut ? boundText(`${deltas}…`, reasoningBytes(verbosity)) : deltas).toBe(closing);
}
