// A client in a process of its own: reads event streams over HTTP and tells when each frame's bytes arrived. Spawned by
// bench/reader-process.ts; speaks over the process channel.
import { nowMs } from './statistics.ts';

export interface ReadOrder {
  /** Names the answer: several are read at once. */
  readonly order: number;
  readonly url: string;
  readonly apiKey: string;
}

export interface ReadFrame {
  readonly id: number;
  readonly event: string;
  /** ms epoch. */
  readonly atMs: number;
  /** Text of a delta. */
  readonly delta?: string;
}

export interface ReadAnswer {
  readonly order: number;
  readonly frames: readonly ReadFrame[];
  readonly error?: string;
}

function frameOf(text: string, atMs: number): ReadFrame | undefined {
  const field = (name: string) =>
    text
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const id = field('id');
  if (id === undefined) return undefined;
  const event = field('event') ?? '';
  if (!event.endsWith('.delta')) return { id: Number(id), event, atMs };
  const { payload } = JSON.parse(field('data') ?? '{}') as { payload?: { delta?: string } };
  return { id: Number(id), event, atMs, delta: payload?.delta };
}

async function read({
  url,
  apiKey,
}: Pick<ReadOrder, 'url' | 'apiKey'>): Promise<readonly ReadFrame[]> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' },
  });
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const frames: ReadFrame[] = [];
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of response.body) {
    const atMs = nowMs();
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const frame = frameOf(part, atMs);
      if (frame) frames.push(frame);
    }
  }
  return frames;
}

process.on('message', ({ order, ...asked }: ReadOrder) => {
  const answer = (told: Omit<ReadAnswer, 'order'>) =>
    process.send?.({ order, ...told } satisfies ReadAnswer);
  read(asked).then(
    (frames) => answer({ frames }),
    (error: unknown) => answer({ frames: [], error: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
