// core.channelWrite: the input port `value`, else `config.value`, is written to `config.channelName` through its reducer
// (channels-and-reducers.md).
import type { NodeKind } from '../context.ts';
import { channelRules } from '../../src/rules/channels.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { checkWrite, writeChannel } from '../channels.ts';
import { inputsOf } from '../values.ts';

interface Config {
  readonly channelName: string;
  readonly reducer?: string;
  readonly ttlMs?: number;
  readonly value?: JsonValue;
}

export const channelWrite: NodeKind = async (visit) => {
  const config = visit.node.config as unknown as Config;
  const { channelName: channel, reducer = 'append', ttlMs } = config;
  const value = inputsOf(visit).value ?? config.value ?? null;
  await checkWrite(visit, { channel, value });
  writeChannel(visit, { channel, value, undeclared: channelRules({ reducer, ttlMs }) });
  return { kind: 'completed', outputs: {} };
};
