// An agent that is started by hand, with the socket and the token of `openwop agents attach`. It reconnects not: the next
// token is another process's.
import { agent, tool } from '../../../src/agent-sdk/index.ts';

export const GUEST = 'com.example.guest';

if (/guest-agent\.(ts|mjs)$/.test(process.argv[1] ?? '')) {
  await agent({
    id: GUEST,
    version: '1.0.0',
    tools: [
      tool({
        name: 'greet',
        sideEffects: false,
        description: 'Greets.',
        input: {
          type: 'object',
          properties: { name: { type: 'string' } },
          required: ['name'],
          additionalProperties: false,
        },
        run: ({ name }) => ({ greeting: `Hello ${name}`, pid: process.pid }),
      }),
    ],
  }).run();
}
