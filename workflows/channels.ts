// Writing and reading channels (channels-and-reducers.md): a write is stated as it was given, with its reducer, and what
// it is reduced to is state of the run. A channel that the definition does not declare is a variable (§Legacy mode).
import {
  channelOf,
  channelRules,
  entryOf,
  foldWrite,
  isoTime,
  type ChannelRules,
} from '../src/rules/channels.ts';
import { codeOf } from '../src/rules/errors.ts';
import type { JsonObject, JsonValue } from '../src/rules/json.ts';
import { CHANNEL_BYTES } from '../src/rules/limits.ts';
import { mask } from '../src/rules/redaction.ts';
import { MESSAGE_CHANNEL } from '../src/rules/run-input.ts';
import { emitFact, nodeFailure, type Run, type Visit } from './context.ts';
import { emit } from './journal.ts';
import { stepKey } from './steps.ts';
import { bounded, hold, isSensitive, keepVariable, stateVariable } from './values.ts';

/** Longest id of a node that the event names (channel-written-payload.schema.json). */
const NODE_ID_LENGTH = 128;

interface GivenWrite {
  readonly channel: string;
  readonly value: JsonValue;
  /** Several writes of one attempt are told apart by it. */
  readonly index?: number;
}

interface ChannelWrite extends GivenWrite {
  /** Of a channel that is not declared; of a declared one its declaration says. */
  readonly undeclared: ChannelRules;
}

function stepOf({ index }: GivenWrite): string {
  return index === undefined ? 'channel' : `channel.${index}`;
}

/** Checks a value against the schema of its channel. Throws the node failure validation_error. */
export async function checkWrite(visit: Visit, write: GivenWrite): Promise<void> {
  const { run } = visit;
  const { channel, value } = write;
  const declared = channelOf(run.input.definition.channels, channel);
  bounded(value, `the write to channel ${channel}`);
  if (declared?.schema === undefined) return;
  const checked = await run.steps.run(visit, 'checkValue', {
    step: `${stepOf(write)}.check`,
    input: { value, schema: declared.schema as JsonObject },
  });
  if (!checked.ok) throw refused(channel, checked.message, { errors: checked.errors });
}

/**
 * Writes what was checked. Throws the node failures validation_error (the write does not fit the reducer, or the channel
 * is full) and payload_too_large.
 */
export function writeChannel(visit: Visit, write: ChannelWrite): void {
  const { run, frame } = visit;
  const { channel, value, undeclared } = write;
  const declared = channelOf(run.input.definition.channels, channel);
  const rules = declared ? channelRules(declared) : undeclared;
  const step = stepOf(write);
  const atMs = run.steps.now(stepKey(visit, `${step}.written`));
  const entry = bounded(entryOf(rules, value, atMs), `the write to channel ${channel}`);
  const before = declared
    ? (run.state.channels?.[channel] ?? (declared.default as JsonValue | undefined))
    : run.state.variables[channel];
  const next = reducedOrRefused(channel, () => foldWrite(rules, before, entry));
  const previous = declared ? keep(run, channel, next) : keepVariable(run, channel, next);
  const isMasked = declared ? declared.sensitive : isSensitive(run, channel);
  const key = emitFact(visit, 'channel.written', {
    step,
    payload: {
      channel,
      value: isMasked ? mask() : entry,
      reducer: rules.reducer,
      writtenAt: isoTime(atMs),
      ...(frame.nodeId.length > NODE_ID_LENGTH ? {} : { nodeId: frame.nodeId }),
      ...(declared ? { schemaVersion: declared.schemaVersion ?? 1 } : {}),
    },
  });
  if (!declared) stateVariable(visit, { name: channel, previous, next }, { step, causedBy: key });
}

/** What somebody said that started the run is the first thing in its channel (RFC 0077 §D). */
export function stateMessage(run: Run): void {
  const { input, state } = run;
  const { message } = input;
  if (!message) return;
  keep(run, MESSAGE_CHANNEL, [message]);
  emit(
    'channel.written',
    {
      ...{ channel: MESSAGE_CHANNEL, value: message, reducer: 'message', schemaVersion: 1 },
      writtenAt: isoTime(state.startedAtMs),
    },
    { key: 'message' },
  );
}

function keep(run: Run, channel: string, next: JsonValue): JsonValue | undefined {
  bounded(next, `channel ${channel}`, CHANNEL_BYTES);
  const channels = (run.state.channels ??= {});
  const previous = channels[channel];
  hold(run, previous, next);
  channels[channel] = next;
  return previous;
}

function reducedOrRefused(channel: string, reduce: () => JsonValue): JsonValue {
  try {
    return reduce();
  } catch (error) {
    if (codeOf(error) !== 'validation_error') throw error;
    throw refused(channel, (error as Error).message);
  }
}

function refused(channel: string, message: string, more: JsonObject = {}) {
  return nodeFailure('validation_error', `The write to channel ${channel} is refused: ${message}`, {
    channel,
    ...more,
  });
}
