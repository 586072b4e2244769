// Progress of one tool call as it comes (seed 004 §4.3.2, architecture §3.5): `output.chunk` deltas with channel
// `tool.<channel>`. A call without progress leaves no trace: no block, no row, no other result.
import { Context } from '@temporalio/activity';
import { toolChannel } from '../src/rules/deltas.ts';
import type { RecordedDeltas, StepResult } from '../src/rules/journal.ts';
import type { Tool, ToolProgress } from '../src/ports/tools.ts';
import type { CallToolInput } from './contract.ts';
import { DeltaWriter } from './delta-writer.ts';
import { beating } from './heartbeat.ts';
import type { ActivityPorts } from './ports.ts';
import { placeOf } from './place.ts';
import { recordDeltas } from './recorded-deltas.ts';

/** UTF-8 bytes of progress that one call may show: it stands in history, and there a control character takes six. */
export const PROGRESS_BYTES = 256 * 1024;
/** Deltas of one call's progress; the notice comes on top. */
export const PROGRESS_DELTAS = 2_048;
/** Channels of one call; the text of more goes to FALLBACK_CHANNEL. */
const MAX_CHANNELS = 8;
const CHANNEL_NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const FALLBACK_CHANNEL = 'log';
const NOTICE_CHANNEL = 'status';
const NOTICE = '[more output is not shown]\n';
/** Channels whose pieces are messages and no byte stream: each ends its line, so that joined ones can be told apart. */
const LINES: ReadonlySet<string> = new Set(['log', 'partial_result', 'status']);

export interface LiveProgress {
  /** Returns at once, never throws; no effect after the end. */
  push(progress: ToolProgress): void;
  /** Throws when the log cannot be written. */
  close(): Promise<RecordedDeltas | undefined>;
  /** After a failure: the block stays open for the next try. Never throws. */
  abandon(): Promise<void>;
}

function openProgress(ports: ActivityPorts, input: CallToolInput): LiveProgress {
  const { activityId } = input.context;
  const writer = newWriter(ports, input);
  const channels = new Set([FALLBACK_CHANNEL]);
  const channelOf = (name: string): string => {
    const isNew = !channels.has(name);
    // A name that holds a secret is none after redaction.
    const isNamed = CHANNEL_NAME.test(ports.redactor.text(name));
    if (isNew && (!isNamed || channels.size >= MAX_CHANNELS)) return FALLBACK_CHANNEL;
    channels.add(name);
    return name;
  };
  let isEnded = false;
  return {
    push: ({ channel, text }) => {
      if (isEnded || writer.isOver || text === '') return;
      const name = channelOf(channel);
      const line = LINES.has(name) && !text.endsWith('\n') ? `${text}\n` : text;
      writer.push({ channel: toolChannel(name), text: line });
    },
    close: async () => {
      isEnded = true;
      return recordDeltas(activityId, await writer.close());
    },
    abandon: () => {
      isEnded = true;
      return writer.abandon();
    },
  };
}

function newWriter(ports: ActivityPorts, { call, calledKey, context }: CallToolInput): DeltaWriter {
  const { tenant, runId, activityId, nodeId } = context;
  const { callId, toolId } = call;
  return new DeltaWriter(
    {
      log: ports.stores.log,
      catchUp: (run) => ports.log.catchUp(run),
      redacted: () => ports.redactor.stream(),
      logger: ports.logger,
    },
    {
      run: ports.stores.runs.ref(tenant, runId),
      activityId,
      ...placeOf(context, calledKey),
      tryNumber: Context.current().info.attempt,
      type: 'output.chunk',
      base: { nodeId, runId, isLast: false, callId, toolId },
      field: 'chunk',
      maxBytes: PROGRESS_BYTES,
      maxDeltas: PROGRESS_DELTAS,
      notice: { channel: toolChannel(NOTICE_CHANNEL), text: NOTICE },
    },
  );
}

interface Call {
  readonly ports: ActivityPorts;
  readonly input: CallToolInput;
  /** As this worker knows it now. */
  readonly tool: Tool | undefined;
}

type OnProgress = (progress: ToolProgress) => void;

/**
 * Runs a tool call under heartbeats. What a tool of an agent process tells is shown live and counted in the
 * heartbeat's details; the result records it. After a throw the next try goes on in the same block.
 */
export function showingProgress<Output>(
  { ports, input, tool }: Call,
  body: (onProgress?: OnProgress) => Promise<StepResult<Output>>,
): Promise<StepResult<Output>> {
  // A tool that is gone, or streams no more, may have streamed in an earlier try: its block is closed with the result.
  const mayHaveStreamed = tool === undefined || tool.remote !== undefined;
  if (!mayHaveStreamed) return beating(() => body());
  return beating(async (tell) => {
    const live = openProgress(ports, input);
    let told = 0;
    const onProgress = (piece: ToolProgress): void => {
      tell({ progress: ++told });
      live.push(piece);
    };
    try {
      const result = await body(tool?.remote?.streams ? onProgress : undefined);
      const deltas = await live.close();
      return { ...result, ...(deltas ? { deltas } : {}) };
    } catch (error) {
      await live.abandon();
      throw error;
    }
  });
}
