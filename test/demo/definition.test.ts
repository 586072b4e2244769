// The demo's data holds together: what it names exists, and it is valid like anybody's
// (workflow-definition.schema.json, RFC 0003).
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { graphFaults } from '../../src/rules/definition-graph.ts';
import { demoRunRequest } from '../../src/demo/index.ts';
import { refundDesk, refundDeskAgents } from '../../src/demo/definition.ts';
import { orderTools } from '../../src/demo/order-tools.ts';
import { refundDeskScripts } from '../../src/demo/scripts.ts';
import { readFileSync } from 'node:fs';

const known = new Map<string, object>();
const ajv = new Ajv2020({ strict: false, validateFormats: false });
function schema(name: string): object {
  const url = new URL(`../../schemas/${name}.schema.json`, import.meta.url);
  const read = known.get(name) ?? (JSON.parse(readFileSync(url, 'utf8')) as object);
  known.set(name, read);
  return read;
}

describe('refund desk', () => {
  it('workflow-definition.schema.json: the definition has a valid shape and graph', () => {
    expect(ajv.validate(schema('workflow-definition'), refundDesk), ajv.errorsText()).toBe(true);
    expect(graphFaults(refundDesk)).toEqual([]);
  });
  it.each(refundDeskAgents.map((agent) => [agent.manifest.agentId, agent] as const))(
    'RFC 0003 %s: valid manifest, schemas that compile, a script, tools that exist',
    (agentId, agent) => {
      expect(ajv.validate(schema('agent-manifest'), agent.manifest), ajv.errorsText()).toBe(true);
      expect(
        ajv.validate(schema('agent-script'), refundDeskScripts[agentId]),
        ajv.errorsText(),
      ).toBe(true);
      const tools = [...orderTools('http://shop').map((tool) => tool.toolId), 'core:json.query'];
      expect(tools).toEqual(expect.arrayContaining([...(agent.manifest.toolAllowlist ?? [])]));
      expect(() => ajv.compile(agent.taskSchema ?? false)).not.toThrow();
      expect(() => ajv.compile(agent.returnSchema ?? false)).not.toThrow();
    },
  );
  it('every agent node names an agent of the demo', () => {
    const pinned = refundDesk.nodes.flatMap((node) => (node.agent ? [node.agent.agentId] : []));
    expect(pinned).toEqual(refundDeskAgents.map((agent) => agent.manifest.agentId));
  });
  it("the run's inputs are the declared variables and pass the first agent's task schema", () => {
    expect(Object.keys(demoRunRequest.inputs)).toEqual(
      refundDesk.variables.map(({ name }) => name),
    );
    expect(ajv.validate(refundDeskAgents[0]?.taskSchema ?? false, demoRunRequest.inputs)).toBe(
      true,
    );
  });
});
