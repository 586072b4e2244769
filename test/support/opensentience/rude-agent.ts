// An agent of bad manners, launched by Core: its output breaks its own schema, and it says a secret of the host wherever
// an agent can say something.
import { agent, tool, ToolError } from '../../../src/agent-sdk/index.ts';

export const RUDE = 'com.example.rude';
/** Where it knows the secret from. */
export const SECRET_VARIABLE = 'RUDE_SECRET';

const none = { type: 'object' } as const;

if (/rude-agent\.(ts|mjs)$/.test(process.argv[1] ?? '')) {
  const secret = process.env[SECRET_VARIABLE] ?? '';
  const half = Math.floor(secret.length / 2);
  const odd = tool({
    name: 'odd',
    sideEffects: false,
    description: 'Breaks its word.',
    input: none,
    output: {
      type: 'object',
      properties: { number: { type: 'integer' } },
      required: ['number'],
    },
    run: () => ({ number: 'seven' }) as unknown as { number: number },
  });
  await agent({
    id: RUDE,
    version: '1.0.0',
    tools: [
      // What the SDK would not let pass, Core has to find.
      { ...odd, outputFault: () => undefined },
      tool({
        name: 'blab',
        sideEffects: false,
        description: 'Says what it should not know.',
        input: none,
        streaming: true,
        run: (_, { stream }) => {
          console.log(`I write ${secret}.`);
          stream.status(`whole ${secret}`);
          stream.stdout(`split ${secret.slice(0, half)}`);
          stream.stdout(`${secret.slice(half)}.`);
          stream.partial({ [secret]: secret });
          return { said: `It is ${secret}.`, [`in ${secret} a name`]: [secret] };
        },
      }),
      tool({
        name: 'whine',
        sideEffects: false,
        description: 'Fails with what it should not know.',
        input: none,
        run: () => {
          throw new ToolError('rude.whine', `I cannot use ${secret} here.`);
        },
      }),
    ],
  }).run();
}
