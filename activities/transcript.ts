// The conversation of an agent, kept in the content store as chunks linked to their predecessor (architecture §2.6): an
// activity gets only the newest hash, so history grows linearly with turns.
import { HostError } from '../src/rules/errors.ts';
import type { ContentHolder, ContentStore } from '../src/ports/content.ts';
import type { TranscriptItem } from '../src/ports/models.ts';

/** Most chunks of one conversation. */
const MAX_CHUNKS = 1024;
/** Most bytes of one conversation. */
const MAX_TRANSCRIPT_BYTES = 16 * 1024 * 1024;
/** Fed to the model for a call that has no result. */
const NO_RESULT = '{"error":{"code":"cancelled","message":"The call was not performed."}}';

type RunName = Required<ContentHolder>;

interface Chunk extends Said {
  readonly prev: string | null;
}

/** What is added to a conversation at once. */
interface Said {
  readonly items: readonly TranscriptItem[];
  /**
   * The model was told in this invocation that it gave too much at once (architecture §5). Each turn passes it on; what
   * begins an invocation does not.
   */
  readonly excessTold?: true;
}

/** JSON text out of the content store. Throws HostError content_missing. */
export async function readJson<Value>(
  content: ContentStore,
  tenant: string,
  hash: string,
): Promise<Value> {
  return JSON.parse(new TextDecoder().decode(await content.get(tenant, hash))) as Value;
}

/** Stores a value that a run needs as JSON text; returns its hash. */
export function writeJson(
  content: ContentStore,
  { tenant, runId }: RunName,
  value: unknown,
): Promise<string> {
  return content.put({ tenant, runId }, new TextEncoder().encode(JSON.stringify(value)));
}

/** Adds a chunk after `prev`; returns the new newest hash. Items must be redacted. */
export function appendTranscript(
  { content, run }: { content: ContentStore; run: RunName },
  prev: string | null,
  said: Said,
): Promise<string> {
  return writeJson(content, run, { prev, ...said } satisfies Chunk);
}

/** All items, oldest first, and what the newest chunk says. Throws HostError payload_too_large above the bounds. */
export async function loadTranscript(
  content: ContentStore,
  tenant: string,
  hash: string,
): Promise<Said> {
  const chunks: Chunk[] = [];
  let bytes = 0;
  for (let at: string | null = hash; at !== null;) {
    const raw: Uint8Array = await content.get(tenant, at);
    bytes += raw.byteLength;
    if (chunks.length >= MAX_CHUNKS || bytes > MAX_TRANSCRIPT_BYTES) {
      throw new HostError('payload_too_large', {
        reason: 'The conversation of the agent is longer than permitted.',
      });
    }
    const chunk = JSON.parse(new TextDecoder().decode(raw)) as Chunk;
    chunks.push(chunk);
    at = chunk.prev;
  }
  const [newest] = chunks;
  const items = chunks.reverse().flatMap((chunk) => chunk.items);
  return { items, ...(newest?.excessTold ? { excessTold: true } : {}) };
}

/**
 * A model's calls get their ids only afterwards, from the workflow: here each call of an assistant item takes the id
 * of its result, by order, and a call without a result gets one that says so.
 */
export function linkCalls(items: readonly TranscriptItem[]): TranscriptItem[] {
  const linked: TranscriptItem[] = [];
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    if (item?.role !== 'assistant' || item.calls.length === 0) {
      if (item) linked.push(item);
      continue;
    }
    const results: Extract<TranscriptItem, { role: 'tool' }>[] = [];
    for (let next = items[at + 1]; next?.role === 'tool'; next = items[at + 1]) {
      results.push(next);
      at++;
    }
    const calls = item.calls.map((call, index) => ({
      ...call,
      callId: results[index]?.callId ?? call.callId,
    }));
    linked.push({ ...item, calls });
    for (const [index, { callId, toolId }] of calls.entries()) {
      linked.push(results[index] ?? { role: 'tool', callId, toolId, text: NO_RESULT });
    }
  }
  return linked;
}
