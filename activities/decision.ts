// The final structured output of a model (architecture §5): `{decision, confidence?, reasoning?}`, read from text that
// is untrusted, and checked against the agent's return schema before it is recorded (RFC 0077 §B step 6).
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { faultText, readJson } from '../src/rules/json-text.ts';
import { decisionOf, decisionsIn, onlyObjectIn } from '../src/rules/decision-text.ts';
import { MODEL_VALUE_LEVELS } from '../src/rules/limits.ts';
import { boundText } from '../src/rules/tokens.ts';
import { decisionSchema } from '../src/rules/orchestrator.ts';
import type { ResolvedAgent } from '../src/ports/catalog.ts';
import { askedOf, CLARIFICATION_SCHEMA, type Asked } from './clarification.ts';
import type { Orchestrates } from './contract.ts';
import { checkAgainst } from '../src/wire/user-schema.ts';

/** Longest text in bytes that tells what was wrong. */
const MESSAGE_BYTES = 2048;
const MAX_TOLD_FAULTS = 5;

const NO_OBJECT = 'The output is not one JSON object.';
const NO_DECISION = 'The output has no member "decision".';

export type ParsedDecision =
  | Asked
  | {
      readonly ok: true;
      readonly kind: 'decision';
      readonly decision: JsonValue;
      readonly confidence?: number;
      readonly reasoning?: string;
    };

/**
 * What a decision must match, each of them: an orchestrator's is first one that its host can follow, and then what its
 * manifest asks for.
 */
export function returnSchemasOf(
  { returnSchema }: Pick<ResolvedAgent, 'returnSchema'>,
  orchestrates: Orchestrates | undefined,
): readonly JsonObject[] {
  return [
    ...(orchestrates ? [decisionSchema(orchestrates.workerIds)] : []),
    ...(returnSchema ? [returnSchema] : []),
  ];
}

/** The same as one schema, for a decision that a human gives in the agent's place. */
export function returnSchemaOf(
  agent: Pick<ResolvedAgent, 'returnSchema'>,
  orchestrates: Orchestrates | undefined,
): JsonObject | undefined {
  const [first, own] = returnSchemasOf(agent, orchestrates);
  if (!first || !own) return first;
  const { $schema } = own;
  // By an `$id` it keeps its own root for `#` references; its dialect counts at the root alone.
  return {
    ...($schema === undefined ? {} : { $schema }),
    allOf: [first, { ...own, $id: 'own' }],
  };
}

/** Schema of the output, for the provider. References of the return schema follow it to its new place. */
export function outputSchema(returnSchema: JsonObject | undefined): JsonObject {
  return {
    type: 'object',
    properties: {
      decision:
        returnSchema === undefined
          ? {}
          : {
              anyOf: [movedTo('/properties/decision/anyOf/0', returnSchema), CLARIFICATION_SCHEMA],
            },
      confidence: { type: 'number', minimum: 0, maximum: 1 },
      reasoning: { type: 'string' },
    },
    required: ['decision'],
    additionalProperties: false,
  };
}

/** The schema as a part of another one: what it refers to by `#` stands at this pointer there. */
export function movedTo(pointer: string, schema: JsonValue): JsonValue {
  const moved = (value: JsonValue): JsonValue => movedTo(pointer, value);
  if (Array.isArray(schema)) return schema.map(moved);
  if (!isJsonObject(schema)) return schema;
  const entries = Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id');
  return Object.fromEntries(
    entries.map(([key, value]) => {
      const isReference = key === '$ref' && typeof value === 'string' && value.startsWith('#');
      return [key, isReference ? value.replace('#', `#${pointer}`) : moved(value)];
    }),
  );
}

/** Reads the output: the one decision in it, or questions in its place, as decision-text.ts finds them. */
export function parseDecision(text: string): ParsedDecision {
  const written = decisionsIn(text);
  if (written.unclear !== undefined) return { ok: false, message: written.unclear };
  const decision = decisionOf(written);
  return decision === undefined ? undecided(text) : readDecision(decision);
}

/** What is missing in a text without a decision. */
function undecided(text: string): ParsedDecision {
  const object = onlyObjectIn(text);
  if (object === undefined) return { ok: false, message: NO_OBJECT };
  const read = readJson(object, MODEL_VALUE_LEVELS);
  if (!read.ok) return { ok: false, message: `${faultText('The output', read.fault)}.` };
  const isRecord = isJsonObject(read.value) && Object.hasOwn(read.value, 'decision');
  return { ok: false, message: isRecord ? NO_OBJECT : NO_DECISION };
}

function readDecision(text: string): ParsedDecision {
  const read = readJson(text, MODEL_VALUE_LEVELS);
  if (!read.ok) return { ok: false, message: `${faultText('The output', read.fault)}.` };
  const { value } = read;
  const asked = isJsonObject(value) ? askedOf(value) : undefined;
  if (asked) return asked;
  if (!isJsonObject(value) || value.decision === undefined)
    return { ok: false, message: NO_DECISION };
  const { decision, confidence, reasoning } = value;
  const noConfidence = confidence === undefined || confidence === null;
  if (!noConfidence && !(typeof confidence === 'number' && confidence >= 0 && confidence <= 1)) {
    return { ok: false, message: 'The member "confidence" is not a number from 0 to 1.' };
  }
  if (reasoning !== undefined && reasoning !== null && typeof reasoning !== 'string') {
    return { ok: false, message: 'The member "reasoning" is not a string.' };
  }
  return {
    ok: true,
    kind: 'decision',
    decision,
    ...(noConfidence ? {} : { confidence }),
    ...(typeof reasoning === 'string' ? { reasoning } : {}),
  };
}

/** What is wrong with a decision by the return schema; undefined when nothing is. Names rules, not values. */
export function returnViolation(decision: JsonValue, returnSchema: JsonObject): string | undefined {
  const checked = checkAgainst(returnSchema, decision);
  if (checked.ok) return undefined;
  const told = checked.errors
    .slice(0, MAX_TOLD_FAULTS)
    .map(({ pointer, message }) => `${pointer || '/'} ${message}`);
  return boundText(
    `The decision does not match the return schema: ${told.join('; ')}.`,
    MESSAGE_BYTES,
  );
}
