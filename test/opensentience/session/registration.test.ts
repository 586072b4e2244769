// src/opensentience/session/registration.ts: what a set of tools costs its agent that is declared once more (seed 004
// §4.2.1 replace). How each declaration is judged is told in session.test.ts.
import { expect, it } from 'vitest';
import type { DeclaredTool } from '../../../src/opensentience/messages.ts';
import { ToolTable } from '../../../src/opensentience/session/registration.ts';
import { AGENT, rulesOf, toolOf } from '../../support/opensentience/wire.ts';

const T0 = 1_000_000;
const id = (name: string): string => `${AGENT}/${name}`;

/** Of 302 parts. */
function large(name: string, mark = name): DeclaredTool {
  const anyOf = Array.from({ length: 300 }, (_, at) => ({ const: `${mark}-${at}` }));
  return toolOf(name, { input_schema: { anyOf } });
}

/** Together a little more than an agent may declare at once: the last one is taken, and to be paid for. */
const MANY = Array.from({ length: 14 }, (_, n) => large(`t${n}`));
const IDS = MANY.map(({ tool_id: toolId }) => toolId);

function table(): ToolTable {
  const tools = new ToolTable(AGENT, rulesOf(), T0);
  expect(tools.register({ tools: MANY }, T0).answer).toEqual({ registered: IDS });
  return tools;
}

it('[I103] a declaration with a number that cannot be kept exactly is refused by itself', () => {
  const tools = new ToolTable(AGENT, rulesOf(), T0);
  const schema = { properties: { n: { maximum: NaN } } };
  const wide = toolOf('wide', { input_schema: schema });
  const { answer } = tools.register({ tools: [wide, toolOf('echo')] }, T0);
  expect(answer.registered).toEqual([id('echo')]);
  expect(answer.rejected?.map(({ error }) => error)).toMatchObject([
    {
      code: 'tool.invalid_schema',
      details: {
        pointer: '/input_schema/properties/n/maximum',
        reason: expect.stringContaining('cannot be kept exactly') as unknown,
      },
    },
  ]);
});

it('replace: what is declared as it stood is no work, in whatever order its members come', () => {
  const tools = table();
  const turned = (one: DeclaredTool): DeclaredTool => {
    const { tool_id, name, description, input_schema } = one;
    return { input_schema, description, name, tool_id };
  };
  for (let time = 0; time < 3; time += 1) {
    const { answer, removed } = tools.register({ tools: MANY.map(turned), replace: true }, T0);
    expect([answer, removed]).toEqual([{ registered: IDS }, []]);
  }
});
it('replace: nor is it where the set comes in parts, of which the first forgets', () => {
  const tools = table();
  tools.register({ tools: MANY.slice(0, 4), replace: true }, T0);
  const { answer } = tools.register({ tools: MANY.slice(4) }, T0);
  expect(answer).toEqual({ registered: IDS.slice(4) });
  expect(tools.ids()).toEqual(IDS);
});
it('replace: a tool whose new declaration has to wait stays as it stood', () => {
  const tools = table();
  const set = [large('t0', 'other'), ...MANY.slice(1), large('new')];
  const { answer, removed } = tools.register({ tools: set, replace: true }, T0);
  expect(answer.registered).toEqual(IDS.slice(1));
  expect(answer.rejected?.map(({ tool_id, error }) => [tool_id, error.code])).toEqual([
    [id('t0'), 'protocol.flood'],
    [id('new'), 'protocol.flood'],
  ]);
  expect(removed).toEqual([]);
  expect(tools.get(id('t0'))?.declaration).toEqual(MANY[0]);
  // It waits its time, and is taken.
  expect(
    tools.register({ tools: set, replace: true }, T0 + 10_000).answer.rejected,
  ).toBeUndefined();
  expect(tools.get(id('t0'))?.declaration).toEqual(set[0]);
});
it('replace: a tool whose new declaration is turned down for good is not there any more', () => {
  const tools = table();
  const bad = toolOf('t0', { input_schema: { type: 'nothing' } });
  expect(tools.register({ tools: [bad], replace: true }, T0 + 10_000).removed).toEqual(IDS);
  expect(tools.ids()).toEqual([]);
});
