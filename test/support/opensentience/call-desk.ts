// A table of calls (src/opensentience/session/calls.ts) without a socket: tests say what the agent says, and read what the
// table asks for.
import { CallTable, type CallRequest } from '../../../src/opensentience/session/calls.ts';
import type { CallOutcome, Effect } from '../../../src/opensentience/session/effects.ts';
import type {
  AgentPayloads,
  Correlation,
  StreamChannel,
} from '../../../src/opensentience/messages.ts';
import type { ProtocolLimits } from '../../../src/opensentience/limits.ts';
import { ToolTable } from '../../../src/opensentience/session/registration.ts';
import { AGENT, callOf, message, rulesOf, toolOf } from './wire.ts';

/** When each desk opens, in ms. */
export const T0 = 1_000_000;
/** What callOf names its calls by. */
export const IDS: Correlation = {
  request_id: 'request-1',
  correlation_id: 'run-1',
  causation_id: 'event-1',
};
const OUTPUT_SCHEMA = { type: 'object', properties: { n: { type: 'integer' } } };

/** A table of calls with two tools, and what it asked for since the last look. */
export class Desk {
  readonly rules;
  readonly tools;
  readonly calls: CallTable;
  effects: Effect[] = [];

  constructor(limits: Partial<ProtocolLimits> = {}) {
    this.rules = rulesOf({ cancelMs: 1_000, ...limits });
    this.tools = new ToolTable(AGENT, this.rules, T0);
    this.tools.register(
      {
        tools: [toolOf('echo', { output_schema: OUTPUT_SCHEMA }), toolOf('other')],
      },
      T0,
    );
    this.calls = new CallTable(this.rules, (effect) => this.effects.push(effect));
  }

  add(callId: string, more: Partial<CallRequest> = {}, name = 'echo'): void {
    const request = { ...callOf(`${AGENT}/${name}`), ...more };
    const entry = { callId, messageId: `m-${callId}`, request };
    this.calls.add(entry, this.tools.get(request.toolId), T0);
  }

  result(callId: string, more: Partial<AgentPayloads['agent.tool.result']> = {}, ids = IDS): void {
    const payload = { call_id: callId, status: 'succeeded' as const, ...more };
    this.calls.onResult(message('agent.tool.result', payload, ids), T0 + 5);
  }

  stream(
    callId: string,
    seq: number,
    more: Partial<AgentPayloads['agent.tool.stream']> = {},
    ids = IDS,
  ): void {
    const payload = {
      call_id: callId,
      seq,
      channel: 'log' as StreamChannel,
      data: { text: `t${seq}` },
      ...more,
    };
    this.calls.onStream(message('agent.tool.stream', payload, ids));
  }

  ack(callId: string): void {
    this.calls.onCancelAck(
      message('agent.tool.cancel_ack', { call_id: callId, accepted: true }, IDS),
    );
  }

  /** Since the last look, without `changed`. */
  said(): string[] {
    const all = this.effects.splice(0).filter(({ kind }) => kind !== 'changed');
    return all.map((effect) => {
      if (effect.kind === 'send') return effect.message.type;
      if (effect.kind === 'audit') return effect.what;
      if (effect.kind === 'progress') return `${effect.progress.channel}: ${effect.progress.text}`;
      return effect.kind === 'settle' ? `${effect.callId} ${told(effect.outcome)}` : effect.kind;
    });
  }

  outcome(): Extract<CallOutcome, { ok: false }> {
    const found = this.effects.find((effect) => effect.kind === 'settle');
    if (found?.kind !== 'settle' || found.outcome.ok) throw new Error('no failure');
    return found.outcome;
  }
}

/** An outcome in a few words: its code, and whether it was sent, is final, or happened. */
export function told(outcome: CallOutcome): string {
  if (outcome.ok) return 'ok';
  const { code, sent, details } = outcome;
  return [code, sent && 'sent', details.final && 'final', details.happened && 'happened']
    .filter(Boolean)
    .join(' ');
}
