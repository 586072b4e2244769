// The agent of ten lines, and two tools that test its process: what a crash report holds, and work that never ends.
import { agent, tool } from '../../src/agent-sdk/index.ts';

const name = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const;
const none = { type: 'object' } as const;
await agent({
  id: 'com.example.hello',
  version: '1.0.0',
  tools: [
    tool({
      name: 'greet',
      sideEffects: false,
      description: 'Greets.',
      input: name,
      run: (input) => ({ greeting: `Hello ${input.name}` }),
    }),
    tool({
      name: 'report',
      sideEffects: false,
      description: 'Whether a crash report would hold the token.',
      input: none,
      run: () => {
        const report = process.report.getReport() as { environmentVariables?: object };
        const names = Object.keys(report.environmentVariables ?? {});
        return { hasToken: names.some((one) => one.startsWith('OPENSENTIENCE_')) };
      },
    }),
    tool({
      name: 'forever',
      sideEffects: false,
      description: 'Never ends.',
      input: none,
      run: () => new Promise<object>(() => setInterval(() => undefined, 1_000)),
    }),
  ],
}).run();
