// The tools of one session (seed 004 §4.2): which declarations are accepted, and why others are not. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../rules/json.ts';
import { unkeptIn } from '../../rules/json-text.ts';
import { MAX_WORK } from '../../wire/schema-work.ts';
import { compileUserSchema, type CompiledSchema, type UserSchema } from '../../wire/user-schema.ts';
import { validate } from '../../wire/validators.ts';
import { protocolError, type SessionRules } from './effects.ts';
import type {
  AgentPayloads,
  CorePayloads,
  DeclaredTool,
  ProtocolError,
  ProtocolErrorCode,
} from '../messages.ts';
import { Pace } from './pace.ts';
import { MAX_POINTER_LENGTH } from './read-message.ts';

/** Name of a tool without its agent. */
const TOOL_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
/**
 * Work that schemas of a session may make over time, in units of MAX_WORK: an agent that declares anew without end gets
 * `protocol.flood`, once what it may do is spent.
 */
const SCHEMA_WORK = { perSecond: 0.03 * MAX_WORK, burst: 1.5 * MAX_WORK };

/** A declaration with its schemas made ready. */
export interface AcceptedTool {
  readonly declaration: DeclaredTool;
  readonly input: UserSchema;
  readonly output?: UserSchema;
}

export interface Registration {
  readonly answer: CorePayloads['core.tools.registered'];
  /** Tools that were there before and are not any more. */
  readonly removed: readonly string[];
  /** How often each code was given. */
  readonly refusals: Readonly<Record<string, number>>;
}

export class ToolTable {
  readonly #agentId: string;
  readonly #rules: SessionRules;
  readonly #work: Pace;
  #tools = new Map<string, AcceptedTool>();
  /** What the last `replace` forgot: declared again as it stood, it is no work, also where its set comes in parts. */
  #forgotten: ReadonlyMap<string, AcceptedTool> = new Map();

  constructor(agentId: string, rules: SessionRules, nowMs: number) {
    this.#agentId = agentId;
    this.#rules = rules;
    this.#work = new Pace(SCHEMA_WORK, nowMs);
  }

  get(toolId: string): AcceptedTool | undefined {
    return this.#tools.get(toolId);
  }

  ids(): readonly string[] {
    return [...this.#tools.keys()];
  }

  declarations(): readonly DeclaredTool[] {
    return [...this.#tools.values()].map(({ declaration }) => declaration);
  }

  /**
   * Of two declarations of one name the first holds; `replace` forgets what earlier messages declared. A tool that it
   * declares otherwise stays as it was where the agent is only told to wait.
   */
  register({ tools, replace }: AgentPayloads['agent.tools.register'], nowMs: number): Registration {
    const before = this.#tools;
    if (replace) {
      this.#forgotten = before;
      this.#tools = new Map();
    }
    const registered: string[] = [];
    const rejected: { tool_id: string; error: ProtocolError }[] = [];
    const refusals: Record<string, number> = {};
    for (const offer of tools) {
      const checked = this.#check(offer, nowMs);
      if (checked.ok) {
        this.#tools.set(offer.tool_id, checked.tool);
        registered.push(offer.tool_id);
      } else {
        const stood = before.get(offer.tool_id);
        if (stood && checked.error.code === 'protocol.flood') this.#tools.set(offer.tool_id, stood);
        rejected.push({ tool_id: this.#rules.redactor.text(offer.tool_id), error: checked.error });
        refusals[checked.error.code] = (refusals[checked.error.code] ?? 0) + 1;
      }
    }
    const removed = [...before.keys()].filter((toolId) => !this.#tools.has(toolId));
    return {
      answer: { registered, ...(rejected.length > 0 && { rejected }) },
      removed,
      refusals,
    };
  }

  /** The ids that were there. */
  unregister(toolIds: readonly string[]): readonly string[] {
    return toolIds.filter((toolId) => this.#tools.delete(toolId));
  }

  #check(offer: DeclaredTool, nowMs: number): Accepted {
    const { limits, redactor } = this.#rules;
    if (Buffer.byteLength(JSON.stringify(offer)) > limits.maxToolBytes)
      return refused('tool.invalid_schema', { maxBytes: limits.maxToolBytes });
    const unkept = unkeptIn(offer);
    if (unkept)
      return refused('tool.invalid_schema', {
        ...place(redactor.text(unkept.pointer)),
        reason: unkept.message,
      });
    const shape = validate.agentMessage('declared-tool', offer);
    if (!shape.ok) return refused('protocol.invalid_message', place(shape.errors[0].pointer));
    const { tool_id: toolId, name } = offer;
    // A name that holds a secret would be shown wherever tools are.
    if (!TOOL_NAME.test(name) || toolId !== `${this.#agentId}/${name}`)
      return refused('tool.invalid_id');
    if (redactor.text(name) !== name) return refused('tool.invalid_id');
    if (this.#tools.has(toolId)) return refused('tool.duplicate_name');
    if (this.#tools.size >= limits.maxTools)
      return refused('tool.too_many', { maxTools: limits.maxTools });
    const declaration = { ...redactor.json(offer), tool_id: toolId, name };
    const stood = this.#forgotten.get(toolId);
    if (stood && isDeepStrictEqual(stood.declaration, declaration))
      return { ok: true, tool: stood };
    const waitMs = this.#work.take(nowMs, 0);
    if (waitMs > 0) return refused('protocol.flood', { waitMs });
    return this.#accept(declaration);
  }

  #accept(declaration: DeclaredTool): Accepted {
    const input = this.#compile(declaration.input_schema);
    if (!input.ok)
      return refused('tool.invalid_schema', place(`/input_schema${input.errors[0].pointer}`));
    if (declaration.output_schema === undefined)
      return { ok: true, tool: { declaration, input: input.value } };
    const output = this.#compile(declaration.output_schema);
    if (!output.ok)
      return refused('tool.invalid_schema', place(`/output_schema${output.errors[0].pointer}`));
    return { ok: true, tool: { declaration, input: input.value, output: output.value } };
  }

  #compile(schema: JsonObject): CompiledSchema {
    const compiled = compileUserSchema(schema);
    this.#work.spend(compiled.work);
    return compiled;
  }
}

type Accepted =
  | { readonly ok: true; readonly tool: AcceptedTool }
  | { readonly ok: false; readonly error: ProtocolError };

function place(pointer: string): JsonObject {
  return { pointer: pointer.slice(0, MAX_POINTER_LENGTH) };
}

function refused(code: ProtocolErrorCode, details?: JsonObject): Accepted {
  return { ok: false, error: protocolError(code, details) };
}
