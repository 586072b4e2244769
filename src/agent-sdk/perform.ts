// One call from its input to its outcome (seed 004 §4.3): validated on both ends, ended by its signal or its timeout,
// and abandoned when the tool does not end in time.
import type { AgentPayloads, JsonMap, ProtocolError } from '../opensentience/messages.ts';
import { isMap } from './envelope.ts';
import { errorOfTool, protocolError, ToolError } from './errors.ts';
import { exactJson, noJson, OUTPUT_LEVELS } from './exact-json.ts';
import type { AgentLimits } from './limits.ts';
import type { Tool, ToolCall } from './tool.ts';

/** Why a call's signal is aborted. */
export interface Stop {
  readonly code: 'tool.canceled' | 'tool.timeout';
  /** ms that the tool has to end. */
  readonly graceMs: number;
}

export type Outcome = Pick<AgentPayloads['agent.tool.result'], 'status' | 'output' | 'error'>;

const failed = (error: ProtocolError): Outcome => ({ status: 'failed', error });

/** `stopped` resolves when the call's signal was aborted. Never throws. */
export async function perform(
  tool: Tool,
  given: { readonly call: ToolCall; readonly input: unknown; readonly stopped: Promise<Stop> },
  limits: AgentLimits,
): Promise<Outcome> {
  const { call, input, stopped } = given;
  if (!isMap(input)) return failed(protocolError('tool.invalid_input'));
  const fault = tool.inputFault(input);
  if (fault) return failed(protocolError('tool.invalid_input', { details: fault }));
  const work = settled(tool, input, call);
  let stop: Stop | undefined;
  let timer: NodeJS.Timeout | undefined;
  const abandoned = stopped.then((why) => {
    stop = why;
    return new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), why.graceMs);
    });
  });
  const end = await Promise.race([work, abandoned]);
  clearTimeout(timer);
  if (!end) return ended(stop, { details: { stopped: false } });
  if ('thrown' in end) return stop ? ended(stop, end) : failed(errorOfTool(end.thrown));
  // A tool that ended in spite of its signal tells the truth: its effect happened.
  return succeeded(tool, end.output, limits);
}

/** Begins at once: a tool awaits its signal before a cancel behind the call in the same bytes can abort it. */
async function settled(
  tool: Tool,
  input: JsonMap,
  call: ToolCall,
): Promise<{ output: unknown } | { thrown: unknown }> {
  try {
    return { output: await tool.run(input, call) };
  } catch (thrown) {
    return { thrown };
  }
}

/** A more specific code is the tool's to give (seed 004 §4.3.3). */
function ended(stop: Stop | undefined, how: { thrown?: unknown; details?: JsonMap }): Outcome {
  const code = stop?.code ?? 'tool.canceled';
  const { thrown, details } = how;
  const retryable = code === 'tool.timeout';
  const error =
    thrown instanceof ToolError
      ? errorOfTool(thrown)
      : protocolError(code, { retryable, ...(details && { details }) });
  return { status: code === 'tool.canceled' ? 'canceled' : 'failed', error };
}

function succeeded(tool: Tool, returned: unknown, limits: AgentLimits): Outcome {
  const json = exactJson(returned ?? {}, OUTPUT_LEVELS);
  if (!json) {
    const details = { reason: noJson(OUTPUT_LEVELS) };
    return failed(protocolError('tool.invalid_output', { details }));
  }
  if (Buffer.byteLength(json.text) > limits.maxOutputBytes)
    return failed(protocolError('tool.output_too_large'));
  // What is checked is what is sent: dates have become texts, functions are gone.
  const output = json.value;
  if (!isMap(output)) return failed(protocolError('tool.invalid_output'));
  const fault = tool.outputFault(output);
  if (fault) return failed(protocolError('tool.invalid_output', { details: fault }));
  return { status: 'succeeded', output };
}
