// The agent of the fault tests: its tools have their effects at the effect service of the test process, so that a crash
// can be placed before or behind an effect. Launched by Core, with the service's address in its environment.
import { agent, tool } from '../../../src/agent-sdk/index.ts';
import { EFFECTS_VARIABLE, MARK, PAY } from '../faults/scene.ts';

export const FAULT_AGENT = 'com.example.effects';

const input = {
  type: 'object',
  properties: { label: { type: 'string' } },
  required: ['label'],
  additionalProperties: false,
} as const;

function effect(path: string) {
  return async (
    { label }: { label: string },
    call: {
      idempotencyKey: string | undefined;
      signal: AbortSignal;
      stream: { status(text: string): void };
    },
  ): Promise<object> => {
    call.stream.status(`asks for ${label}`);
    const response = await fetch(`${process.env[EFFECTS_VARIABLE] ?? ''}/${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': call.idempotencyKey ?? 'none',
      },
      body: JSON.stringify({ label }),
      signal: call.signal,
    });
    return (await response.json()) as object;
  };
}

if (/fault-agent\.(ts|mjs)$/.test(process.argv[1] ?? '')) {
  await agent({
    id: FAULT_AGENT,
    version: '1.0.0',
    tools: [
      tool({
        name: 'pay',
        description: 'An effect each time.',
        input,
        sideEffects: true,
        streaming: true,
        run: effect(PAY),
      }),
      tool({
        name: 'mark',
        description: 'One effect for each key.',
        input,
        sideEffects: true,
        idempotent: true,
        streaming: true,
        run: effect(MARK),
      }),
    ],
  }).run();
}
