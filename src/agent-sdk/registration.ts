// Registration of tools (seed 004 §4.2): declarations in as many messages as frames need, and Core's word on each.
import type { DeclaredTool, JsonMap } from '../opensentience/messages.ts';
import { isMap } from './envelope.ts';

export interface Registration {
  /** Ids of the tools that Core took. */
  readonly registered: string[];
  /** What it did not take, and the error's code. */
  readonly rejected: { readonly toolId: string; readonly code: string }[];
}

/** At least one, so that an agent without tools registers too. */
export function batchesOf(tools: readonly DeclaredTool[], maxFrameBytes: number): DeclaredTool[][] {
  const batches: DeclaredTool[][] = [[]];
  let bytes = 0;
  for (const tool of tools) {
    const size = Buffer.byteLength(JSON.stringify(tool));
    // Half a frame leaves room for the envelope; a tool alone that is larger is for Core to refuse.
    if (bytes > 0 && bytes + size > maxFrameBytes / 2) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(tool);
    bytes += size;
  }
  return batches;
}

export function readRegistration(payload: JsonMap): Registration {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const registered = list(payload.registered).filter((one) => typeof one === 'string');
  const rejected = list(payload.rejected)
    .filter(isMap)
    .map(({ tool_id, error }) => ({
      toolId: text(tool_id),
      code: isMap(error) ? text(error.code) : '',
    }));
  return { registered, rejected };
}
