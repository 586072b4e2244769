// What stays of an event's payload when the key that it is sealed with is destroyed (architecture §10.1).
import { describe, expect, it } from 'vitest';
import { ERASED } from '../../src/rules/erased.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { erasedPayload } from '../../src/wire/erased-payload.ts';
import { EVENT_TYPE_NAMES, schemaDocument, validate } from '../../src/wire/validators.ts';

interface Schema {
  readonly [key: string]: unknown;
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly JsonValue[];
  readonly const?: JsonValue;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
}

const SAID = 'what Anna said';
const { $defs } = schemaDocument('run-event-payloads') as unknown as {
  $defs: Record<string, Schema>;
};
const { properties } = schemaDocument('run-event-payloads') as unknown as {
  properties: Record<string, Schema>;
};

/** A payload with every member that its schema knows, and words of a person wherever a text may stand. */
function full(schema: Schema, name = ''): JsonValue {
  if (schema.$ref) return full($defs[schema.$ref.split('/').at(-1) ?? ''] ?? {}, name);
  if (schema.anyOf) return full(schema.anyOf[0] ?? {}, name);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0] ?? null;
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0];
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? { said: { type: 'string' } }).map(([member, of]) => [
          member,
          full(of, member),
        ]),
      );
    case 'array':
      return [full(schema.items ?? {}, name)];
    case 'integer':
      return Math.max(schema.minimum ?? 0, 7);
    case 'number':
      return Math.max(schema.minimum ?? 0, 0.9);
    case 'boolean':
      return true;
    default:
      if (schema.format === 'date-time') return '2026-01-02T03:04:05.000Z';
      if (schema.pattern?.includes('sha256')) return `sha256:${'a'.repeat(64)}`;
      return /(Id|^key|^channel|^toolName|^finalReason|Ids|Order|^provider|^model)$/.test(name)
        ? `id-of-${name}`
        : SAID;
  }
}

describe('an erased payload', () => {
  it.each(EVENT_TYPE_NAMES)('%s: is valid by its schema, and says nothing', (type) => {
    const payload = full(properties[type] ?? {}) as JsonObject;
    const text = erasedPayload(type, JSON.stringify(payload));
    const erased = JSON.parse(text) as JsonObject;
    const checked = validate.payload(type, {
      ...erased,
      ...(erased.finalReason ? { finalReason: 'unknown' } : {}),
    });
    expect([type, checked]).toMatchObject([type, { ok: true }]);
    expect(text).not.toContain('Anna');
    expect(text).not.toContain('aaaa');
  });

  it('keeps ids and the words of the protocol, and of a code only one of its form', () => {
    const called = { agentId: 'a.b', toolName: 't', callId: 'call-1', arguments: { name: SAID } };
    expect(JSON.parse(erasedPayload('agent.toolCalled', JSON.stringify(called)))).toEqual({
      ...{ agentId: 'a.b', toolName: 't', callId: 'call-1' },
    });
    const failed = (code: string) =>
      JSON.parse(
        erasedPayload('run.failed', JSON.stringify({ error: { code, message: SAID } })),
      ) as JsonObject;
    expect(failed('tool_failed')).toEqual({ error: { code: 'tool_failed', message: ERASED } });
    expect(failed(SAID)).toEqual({ error: { code: ERASED, message: ERASED } });
  });

  it('of a type without a schema keeps nothing', () => {
    expect(erasedPayload('openwop-temporal.other', JSON.stringify({ said: SAID }))).toBe('{}');
  });
});
